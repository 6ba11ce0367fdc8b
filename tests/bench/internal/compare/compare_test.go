package compare

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/bench/internal/redisserver"
	"github.com/reqlock/reqlock/tests/bench/internal/report"
)

func TestMain(m *testing.M) { suite.Main(m) }

// measured runs a suite without servers three times, with these rates of a and b. It returns the
// order of the runs and the rows of the table.
func measured(t *testing.T, rates map[string][]float64) (order, rows []string, err error) {
	t.Helper()
	runs := make(map[string]int)
	s := Suite{
		Name: "suite", Contestants: []string{"a", "b"},
		Start:    func(testing.TB) *redisserver.Servers { return new(redisserver.Servers) },
		Baseline: func(string) string { return "a" },
		Run: func(_ context.Context, _ *redisserver.Servers, name string) ([]report.Figure, error) {
			order = append(order, name)
			run := runs[name]
			runs[name]++
			if run >= len(rates[name]) {
				return nil, errors.New("no figure")
			}
			return []report.Figure{
				{Name: "rate", Value: rates[name][run], Text: report.Number},
				{Name: "wait", Value: 1000 * rates[name][run], Text: report.Micros},
			}, nil
		},
	}
	results, err := s.Measure(t.Context(), 3, io.Discard)
	var b strings.Builder
	results.Print(&b)
	for line := range strings.Lines(b.String()) {
		rows = append(rows, strings.Join(strings.Fields(line), " "))
	}
	return order, rows, err
}

func TestContestantsAlternateAndMediansArePrinted(t *testing.T) {
	order, rows, err := measured(t, map[string][]float64{"a": {10, 300, 20}, "b": {5, 4, 1}})
	if err != nil {
		t.Error(err)
	}
	if want := []string{"a", "b", "b", "a", "a", "b"}; !slices.Equal(order, want) {
		t.Errorf("the order is %v, want %v", order, want)
	}
	if want := []string{"rate share wait", "a 20.0 100 % 20.0 ms", "b 4.00 20.0 % 4.00 ms"}; rows[1] != want[0] || !slices.Equal(rows[3:5], want[1:]) {
		t.Errorf("the table is %q, want %q", rows, want)
	}
}

func TestARunWithoutFiguresIsAnErrorAndDoesNotCount(t *testing.T) {
	_, rows, err := measured(t, map[string][]float64{"a": {10, 20}})
	if err == nil || strings.Count(err.Error(), "suite: a: no figure") != 1 || strings.Count(err.Error(), "suite: b: no figure") != 3 {
		t.Errorf("the error is %v", err)
	}
	if want := []string{"a 15.0 100 % 15.0 ms", "b - - -"}; !slices.Equal(rows[3:5], want) {
		t.Errorf("the table is %q, want %q", rows, want)
	}
}
