package report

import (
	"fmt"
	"io"

	"github.com/reqlock/reqlock/tests/bench/internal/idempotent"
)

// idempotents returns the runs of a case on a framework under a load.
func (r *Results) idempotents(load, framework string, which idempotent.Case) (runs []idempotent.RequestsRun) {
	for _, run := range r.Idempotent {
		if run.Load == load && run.Framework == framework && run.Case == which {
			runs = append(runs, run)
		}
	}
	return runs
}

// plains returns the runs of the plain handler with as many callers as a load has. They may
// belong to another load, since the plain handler ignores keys.
func (r *Results) plains(load idempotent.Load, framework string) []idempotent.RequestsRun {
	for _, other := range idempotent.Loads() {
		if other.Callers == load.Callers {
			if runs := r.idempotents(other.Name, framework, idempotent.Plain); len(runs) > 0 {
				return runs
			}
		}
	}
	return nil
}

// PrintIdempotent prints the cost of first requests and replays on each framework, relative
// to its plain handler.
func (r *Results) PrintIdempotent(w io.Writer) {
	for _, load := range idempotent.Loads() {
		fmt.Fprintf(w, "%s: a POST with a key, callers and the service in one process over loopback: %s\n",
			idempotent.RequestsSuite, load.Title)
		r.printLoad(w, load)
	}
	fmt.Fprint(w, idempotentNotes)
}

const idempotentNotes = `first: the key is new, the handler runs, and its answer is kept. replay: the answer is that of an earlier request.
What is over plain is over the same framework's plain handler, with as many callers. Fiber stands on fasthttp, so its
plain handler is another one. Its middleware excludes requests within one process: copies that reach two processes at
once both run the handler, where reqlock runs one of them. It does not look at what comes with a key; reqlock refuses
another payload, and so reads and digests the body. It takes keys of 36 characters, and keeps every answer, whatever its
status, with all headers, unless the handler returns an error.

`

// printLoad prints a row for each case of a load on each framework.
func (r *Results) printLoad(w io.Writer, load idempotent.Load) {
	t := newTable("framework", "request", "requests/s", "of plain", "p50", "over plain", "p99", "CPU/request", "over plain",
		"Redis CPU/request", "commands/request", "allocs over plain")
	t.left = 2
	for _, framework := range idempotent.Frameworks() {
		plain := r.plains(load, framework)
		for _, which := range load.Cases() {
			runs := r.idempotents(load.Name, framework, which)
			m := func(of requestFigure) float64 { return medianOf(runs, of) }
			over := func(format func(float64) string, of requestFigure) string {
				if which == idempotent.Plain {
					return ""
				}
				return format(m(of) - medianOf(plain, of))
			}
			share := ""
			if which != idempotent.Plain {
				share = percent(m(requestsPerSecond) / medianOf(plain, requestsPerSecond))
			}
			t.row(framework, string(which),
				number(m(requestsPerSecond)), share,
				duration(m(requestP50)), over(duration, requestP50),
				duration(m(requestP99)),
				duration(m(requestCPU)), over(duration, requestCPU),
				duration(m(requestServerCPU)),
				number(m(requestCommands)),
				over(number, requestAllocations))
		}
	}
	t.print(w)
}

// A requestFigure is one number of a run of requests.
type requestFigure = func(idempotent.RequestsRun) float64

func requestsPerSecond(r idempotent.RequestsRun) float64  { return r.RequestsPerSecond }
func requestP50(r idempotent.RequestsRun) float64         { return r.TimeP50 }
func requestP99(r idempotent.RequestsRun) float64         { return r.TimeP99 }
func requestCPU(r idempotent.RequestsRun) float64         { return r.CPU }
func requestServerCPU(r idempotent.RequestsRun) float64   { return r.ServerCPU }
func requestCommands(r idempotent.RequestsRun) float64    { return r.RedisCommands }
func requestAllocations(r idempotent.RequestsRun) float64 { return r.Allocations }
