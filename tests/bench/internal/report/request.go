package report

import (
	"fmt"
	"io"

	"github.com/reqlock/reqlock/tests/bench/internal/request"
)

// frameworkRuns returns the runs of a framework with or without the lock.
func (r *Results) frameworkRuns(framework string, locked bool) (runs []request.FrameworkRun) {
	for _, run := range r.Frameworks {
		if run.Framework == framework && run.Locked == locked {
			runs = append(runs, run)
		}
	}
	return runs
}

// middlewares returns the runs of a framework.
func (r *Results) middlewares(framework string) (runs []request.MiddlewareRun) {
	for _, run := range r.Middlewares {
		if run.Framework == framework {
			runs = append(runs, run)
		}
	}
	return runs
}

// PrintFrameworks prints what the lock adds to a request on each framework.
func (r *Results) PrintFrameworks(w io.Writer) {
	fmt.Fprintf(w, "%s: 64 clients and the service in one process over loopback, a key for each client; CPU is that of both\n",
		request.FrameworksSuite)
	t := newTable("framework", "requests/s", "with lock", "CPU/request", "with lock", "Redis CPU", "p50", "with lock",
		"p99", "with lock", "allocs", "with lock")
	for _, framework := range request.Frameworks() {
		pair := func(format func(float64) string, of func(request.FrameworkRun) float64) []string {
			return []string{
				format(medianOf(r.frameworkRuns(framework, false), of)),
				format(medianOf(r.frameworkRuns(framework, true), of)),
			}
		}
		row := []string{framework}
		row = append(row, pair(number, func(h request.FrameworkRun) float64 { return h.RequestsPerSecond })...)
		row = append(row, pair(duration, func(h request.FrameworkRun) float64 { return h.CPU })...)
		row = append(row, pair(duration, func(h request.FrameworkRun) float64 { return h.ServerCPU })[1])
		row = append(row, pair(duration, func(h request.FrameworkRun) float64 { return h.TimeP50 })...)
		row = append(row, pair(duration, func(h request.FrameworkRun) float64 { return h.TimeP99 })...)
		row = append(row, pair(number, func(h request.FrameworkRun) float64 { return h.Allocations })...)
		t.row(row...)
	}
	t.print(w)
}

// PrintMiddlewares prints what a middleware adds to handler and lock.
func (r *Results) PrintMiddlewares(w io.Writer) {
	fmt.Fprintf(w, "%s: one caller and no network between client and service; handler, lock and both called in turns\n",
		request.MiddlewareSuite)
	t := newTable("framework", "handler", "lock alone", "handler with lock", "added", "allocs: handler", "lock alone",
		"handler with lock", "added")
	for _, framework := range request.Frameworks() {
		m := func(of func(request.MiddlewareRun) float64) float64 { return medianOf(r.middlewares(framework), of) }
		t.row(framework,
			duration(m(func(r request.MiddlewareRun) float64 { return r.Bare })),
			duration(m(func(r request.MiddlewareRun) float64 { return r.Lock })),
			duration(m(func(r request.MiddlewareRun) float64 { return r.Locked })),
			duration(m(func(r request.MiddlewareRun) float64 { return r.AddedMicros() })),
			number(m(func(r request.MiddlewareRun) float64 { return r.BareAllocations })),
			number(m(func(r request.MiddlewareRun) float64 { return r.LockAllocations })),
			number(m(func(r request.MiddlewareRun) float64 { return r.LockedAllocations })),
			number(m(func(r request.MiddlewareRun) float64 { return r.AddedAllocations() })))
	}
	t.print(w)
}
