package chart

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// lengths reads an SVG document to its end and returns the lengths of its bars.
func lengths(t *testing.T, document string) (bars []float64) {
	t.Helper()
	decoder := xml.NewDecoder(strings.NewReader(document))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return bars
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		element, ok := token.(xml.StartElement)
		if !ok || element.Name.Local != "rect" {
			continue
		}
		for _, attribute := range element.Attr {
			if attribute.Name.Local == "width" {
				length, err := strconv.ParseFloat(attribute.Value, 64)
				if err != nil {
					t.Fatal(err)
				}
				bars = append(bars, length)
			}
		}
	}
}

func TestChartIsXMLWithBarsToScale(t *testing.T) {
	var b strings.Builder
	n, err := Chart{
		Title: `less < more & "quoted"`,
		Note:  "1 µs",
		Bars: []Bar{
			{Label: "<all>", Value: 200, Text: "200", Highlight: true},
			{Label: "half", Value: 100, Text: "100"},
			{Label: "hardly anything", Value: 0.0001, Text: "0"},
			{Label: "nothing", Value: 0, Text: "0"},
			{Label: "unknown", Value: math.NaN(), Text: "-"},
		},
	}.WriteTo(&b)
	if err != nil || n != int64(b.Len()) {
		t.Fatalf("WriteTo returned %d, %v; wrote %d", n, err, b.Len())
	}
	got := lengths(t, b.String())
	const whole = barEnd - barStart
	want := []float64{whole, whole / 2, leastBar, 0, 0}
	if len(got) != len(want) {
		t.Fatalf("%d bars, want %d", len(got), len(want))
	}
	for i := range want {
		if math.Abs(got[i]-want[i]) > 0.1 {
			t.Errorf("bar %d is %v long, want %v", i, got[i], want[i])
		}
	}
}

func TestEmptyChartIsXML(t *testing.T) {
	var b strings.Builder
	if _, err := (Chart{Title: "nothing"}).WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	if bars := lengths(t, b.String()); len(bars) > 0 {
		t.Errorf("%d bars", len(bars))
	}
}
