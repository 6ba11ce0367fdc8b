package report

import (
	"strings"
	"testing"

	"github.com/reqlock/reqlock/tests/bench/internal/idempotent"
	"github.com/reqlock/reqlock/tests/bench/internal/service"
)

// idempotentResults returns three repetitions of some cases, and of a record.
func idempotentResults() *Results {
	r := &Results{}
	for repetition, rate := range []float64{1000, 3000, 2000} {
		run := func(load string, which idempotent.Case, part float64) {
			r.Idempotent = append(r.Idempotent, idempotent.RequestsRun{
				Framework: idempotent.Gin, Case: which, Load: load, Repetition: repetition + 1,
				Costs: service.Costs{RequestsPerSecond: part * rate, TimeP50: 1e6 / rate / part, Allocations: 20 / part},
			})
		}
		run(idempotent.Alone, idempotent.Plain, 0.5)
		run(idempotent.OwnKeys, idempotent.Plain, 1)
		run(idempotent.OwnKeys, idempotent.Replay, 0.8)
		run(idempotent.OneKey, idempotent.Replay, 0.4)
		r.Records = append(r.Records, idempotent.RecordsRun{
			Framework: idempotent.Fiber, Answer: 200, Repetition: repetition + 1, Bytes: 200 + rate/10, Keys: 1,
		})
	}
	return r
}

func TestIdempotentIsHeldAgainstThePlainHandler(t *testing.T) {
	var b strings.Builder
	idempotentResults().PrintIdempotent(&b)
	var rows []string
	for line := range strings.Lines(b.String()) {
		if strings.HasPrefix(line, idempotent.Gin) {
			rows = append(rows, strings.Join(strings.Fields(line), " "))
		}
	}
	const nothing = " 0 µs 0 µs 0 µs 0 µs 0 "
	for i, want := range []string{
		"Gin plain 1,000 1.00 ms 0 µs 0 µs 0 µs 0",
		"Gin first - - - - - - - - - -", // not run
		"Gin replay - - - - - - - - - -",
		"Gin plain 2,000 500 µs 0 µs 0 µs 0 µs 0",
		"Gin first - - - - - - - - - -",
		"Gin replay 1,600 80.0 % 625 µs 125 µs" + nothing + "5.00",
		"Gin replay 800 40.0 % 1.25 ms 750 µs" + nothing + "30.0",
	} {
		if i >= len(rows) || rows[i] != want {
			t.Fatalf("row %d is not %q:\n%s", i+1, want, b.String())
		}
	}
	for _, want := range []string{"within one process", "36 characters", "every answer"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not said of Fiber's middleware:\n%s", want, b.String())
		}
	}
}

func TestRecordsArePrinted(t *testing.T) {
	var b strings.Builder
	idempotentResults().PrintRecords(&b)
	var rows []string
	for line := range strings.Lines(b.String()) {
		rows = append(rows, strings.Join(strings.Fields(line), " "))
	}
	for i, want := range []string{"net/http 200 B - - -", "Fiber 200 B 400 B 200 B 1.00", "net/http 4,096 B - - -"} {
		if rows[3+i] != want {
			t.Errorf("%q is not %q", rows[3+i], want)
		}
	}
}

func TestIdempotentChart(t *testing.T) {
	c := idempotentResults().idempotentChart()
	if len(c.Bars) != 2 || c.Bars[0].Highlight || !c.Bars[1].Highlight || c.Bars[1].Label != "Gin, replay" || c.Bars[1].Value != 1600 {
		t.Errorf("the chart is %+v", c)
	}
}
