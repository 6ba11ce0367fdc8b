package report

import (
	"math"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

func TestFiguresAreRoundedAndHaveUnits(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Number(0), "0"},
		{Number(0.0345), "0.0345"},
		{Number(0.5), "0.50"},
		{Number(9.996), "10.0"},
		{Number(12.34), "12.3"},
		{Number(99.96), "100"},
		{Number(123.4), "123"},
		{Number(999.6), "1,000"},
		{Number(1234567), "1,234,567"},
		{Number(-1234), "-1,234"},
		{Number(math.NaN()), "-"},
		{Micros(12.3), "12.3 µs"},
		{Micros(1234), "1.23 ms"},
		{Micros(2_500_000), "2.50 s"},
		{Micros(math.Inf(1)), "-"},
		{Bytes(5640.4), "5,640 B"},
		{Percent(0.5), "50.0 %"},
		{Percent(math.NaN()), "-"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

func TestTableIsAligned(t *testing.T) {
	table := Table{Left: 1}
	table.Row("lock", "rate")
	table.Row("µ", "1")
	table.Row("longer", "1,234")
	var b strings.Builder
	table.Print(&b)
	want := "lock     rate\n------  -----\nµ           1\nlonger  1,234\n\n"
	if b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}
