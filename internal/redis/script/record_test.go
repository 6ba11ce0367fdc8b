package script

import (
	"strconv"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// FuzzParseRecord compares ParseRecord with a parser that reads the whole record.
func FuzzParseRecord(f *testing.F) {
	answer := strings.Repeat("a b,c\x00\xff\n", 100)
	for _, fields := range []map[string]string{
		{"s": "D", "t": storetest.Me1, "f": "print", "p": answer},
		{"s": "D", "t": "resolved:" + Digest(storetest.Me1), "f": " ,1 \n", "r": "the first", "x": " " + storetest.Bob1 + " ", "p": answer},
		{"s": "R", "t": storetest.Me1, "f": "", "n": "3", "u": "1"},
		{"s": "R", "t": "aborted:" + storetest.Me1, "f": "print", "n": "1000000000", "r": strings.Repeat("r", 300)},
		{ // as long as the beginning of a record gets
			"s": "R", "t": strings.Repeat("f", 32) + ":18446744073709551615", "f": strings.Repeat("f", 32), "n": "1000000000",
			"r": strings.Repeat("r", store.MaxReference), "x": strings.Repeat(" "+storetest.Bob1+" ", 300), "u": "1",
		},
		{"s": "U", "t": storetest.Me1},
		{"s": "A", "t": storetest.Me1, "f": "print"},
		{"s": "R", "t": storetest.Me1, "f": "print", "n": "1000000001"},
	} {
		f.Add(storetest.EncodeRecord(fields))
	}
	for _, text := range []string{
		"", "D", "Da:1 5 prin", "Da 5 print", "Da:1 ,, x", "Ra:1 0,1,,,1,, ", "Ra:1 0,1,,,2 ", "Ra:1 0,1,,,", "Da:1 99999999999999999999 x", "Da:1 0,,9,, 12345678",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		fields := storetest.DecodeRecord(text)
		_, isText := fields[storetest.AnyText]
		_, hasPrint := fields["f"]
		number, _ := strconv.ParseFloat("0"+fields["n"], 64)
		isRecord := !isText && (hasPrint || fields["s"] == "U") && number <= maxNumber && (fields["s"] != "R" || number > 0)

		got, ok := ParseRecord(text, len(text))
		if ok != isRecord {
			t.Fatalf("ParseRecord returns %+v, %t, and the fields are %q", got, ok, fields)
		}
		if !ok {
			return
		}
		want := Record{
			State: text[0], Token: fields["t"], Number: int(number), IsReported: fields["u"] != "", Reference: fields["r"],
			Answer: len(text) - len(fields["p"]),
		}
		if got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		if _, isCut := ParseRecord(text, got.Answer-1); isCut {
			t.Error("a record is accepted although its answer begins behind its end")
		}
		if len(got.Token)+len(got.Reference) > 150 || strings.Count(text[:min(len(text), RecordStart)], " ") < 2 {
			return // no script writes such fields
		}
		if start, ok := ParseRecord(text[:min(len(text), RecordStart)], len(text)); !ok || start != want {
			t.Errorf("of the beginning: %+v, %t; want %+v", start, ok, want)
		}
	})
}
