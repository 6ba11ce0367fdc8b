// Package idempotent has the suites of idempotent requests. A handler reads a payment and answers
// with JSON, with and without a middleware: that of reqlock on net/http and on Gin, and Fiber's own.
//
// Fiber's middleware does less: its lock excludes requests of one process, and it compares no
// payloads. Fiber also uses another HTTP server, so the figures to compare are the shares of the
// plain handler of the same framework.
package idempotent

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/reqlock/reqlock/tests/bench/internal/compare"
	"github.com/reqlock/reqlock/tests/bench/internal/jobprocess"
	"github.com/reqlock/reqlock/tests/bench/internal/redisserver"
	"github.com/reqlock/reqlock/tests/bench/internal/report"
)

// Suites returns the suites of idempotent requests. There are many runs, so each takes a third of a
// window.
func Suites(window time.Duration) []compare.Suite {
	window /= 3
	lone := requestsSuite("idempotent-1", "one client", Requests{Clients: 1, Window: window}, plain, first, replay)
	lone.Contestants = append(lone.Contestants, onNetHTTP+" "+copied)
	// A key that all clients send is new only once, so it has no first requests.
	return []compare.Suite{
		lone,
		requestsSuite("idempotent-32", "32 clients, each with keys of its own", Requests{Clients: 32, Window: window}, plain, first, replay),
		requestsSuite("idempotent-32-one-key", "32 clients, one key", Requests{Clients: 32, OneKey: true, Window: window}, plain, replay),
		memorySuite(),
	}
}

// requestsSuite returns the suite of a load with these cases on each framework.
func requestsSuite(name, title string, load Requests, cases ...string) compare.Suite {
	s := compare.Suite{
		Name: name, Title: "a POST with a key over loopback, clients and service in one process: " + title, Start: redisserver.Start,
		Baseline: func(contestant string) string {
			framework, _, _ := strings.Cut(contestant, " ")
			return framework + " " + plain
		},
		Run: func(ctx context.Context, on *redisserver.Servers, contestant string) ([]report.Figure, error) {
			job := load
			job.Size = smallAnswer
			job.Framework, job.Case, _ = strings.Cut(contestant, " ")
			return job.measure(ctx, on)
		},
	}
	for _, framework := range []string{onNetHTTP, onGin, onFiber} {
		for _, which := range cases {
			s.Contestants = append(s.Contestants, framework+" "+which)
		}
	}
	return s
}

// measure runs the job once.
func (r *Requests) measure(ctx context.Context, on *redisserver.Servers) ([]report.Figure, error) {
	r.Addr = on.Addrs[0]
	outcomes, serverCPU, err := jobprocess.Run[Outcome](ctx, on, r)
	if err != nil {
		return nil, err
	}
	o := outcomes[0]
	requests := o.Times.Count
	return []report.Figure{
		{Name: "requests/s", Value: float64(requests) / r.Window.Seconds(), Text: report.Number},
		{Name: "commands/request", Value: float64(o.Commands) / float64(requests), Text: report.Number},
		report.Duration("p50", o.Times.Quantile(0.50)),
		report.Duration("p99", o.Times.Quantile(0.99)),
		report.Duration("CPU/request", o.Used.CPU/time.Duration(requests)),
		report.Duration("Redis CPU/request", serverCPU/time.Duration(requests)),
		{Name: "allocs/request", Value: float64(o.Used.Allocations) / float64(requests), Text: report.Number},
	}, nil
}

// memorySuite returns the suite of the memory of Redis for each stored answer. The record of
// reqlock does not depend on the framework.
func memorySuite() compare.Suite {
	jobs := map[string]Requests{
		"reqlock 200 B": {Framework: onNetHTTP, Size: 200},
		"reqlock 4 KiB": {Framework: onNetHTTP, Size: 4096},
		"Fiber 200 B":   {Framework: onFiber, Size: 200},
		"Fiber 4 KiB":   {Framework: onFiber, Size: 4096},
	}
	return compare.Suite{
		Name: "idempotent-memory", Title: "memory of Redis for each stored answer, with everything that belongs to it",
		Contestants: []string{"reqlock 200 B", "Fiber 200 B", "reqlock 4 KiB", "Fiber 4 KiB"}, Start: redisserver.Start,
		Run: func(ctx context.Context, on *redisserver.Servers, contestant string) ([]report.Figure, error) {
			job := jobs[contestant]
			job.Case, job.Clients, job.Count, job.Addr = first, 8, 119, on.Addrs[0] // about a thousand answers with the warm-up
			outcomes, _, err := jobprocess.Run[Outcome](ctx, on, &job)
			if err != nil {
				return nil, err
			}
			answers := outcomes[0].Answers
			bytes, keys, err := on.Memory(ctx)
			if err != nil {
				return nil, err
			}
			if keys < answers {
				return nil, fmt.Errorf("of %d records %d are there", answers, keys)
			}
			return []report.Figure{
				{Name: "memory/answer", Value: float64(bytes) / float64(answers), Text: report.Bytes},
				{Name: "keys/answer", Value: float64(keys) / float64(answers), Text: report.Number},
			}, nil
		},
	}
}
