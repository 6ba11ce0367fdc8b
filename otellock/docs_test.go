package otellock_test

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestDocsListTheInstruments compares the table of docs/metrics.md with what is collected.
func TestDocsListTheInstruments(t *testing.T) {
	t.Parallel()
	instruments, reader := newInstruments(t)
	for _, event := range everyEvent() {
		instruments.Observe(event)
	}
	var want []string
	for _, m := range gather(t, reader) {
		want = append(want, m.Name+" "+m.Unit)
	}
	page, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(line, "`"); strings.HasPrefix(line, "| `reqlock.") && len(cells) == 7 {
			got = append(got, cells[1]+" "+cells[5])
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("docs/metrics.md has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
