package request

import (
	"context"
	"time"

	"github.com/reqlock/reqlock/bench/internal/child"
	"github.com/reqlock/reqlock/bench/internal/lab"
)

// The names of the suites.
const (
	HelloSuite      = "hello"
	MiddlewareSuite = "middleware"
)

// A HelloRun is one Hello, once. Costs are those of service and clients
// together, in microseconds and numbers for each request.
type HelloRun struct {
	Framework  string
	Locked     bool
	Repetition int

	RequestsPerSecond                          float64
	TimeP50, TimeP99                           float64
	CPU, ServerCPU, Allocations, RedisCommands float64
}

// RunHello runs all frameworks with and without the lock, in turns.
func RunHello(ctx context.Context, l *lab.Lab) ([]HelloRun, error) {
	var runs []HelloRun
	frameworks := Frameworks()
	err := l.Turns(HelloSuite, 2*len(frameworks), func(repetition, contestant int) error {
		run, err := hello(ctx, l, HelloRun{
			Framework:  frameworks[contestant/2],
			Locked:     contestant%2 == 1,
			Repetition: repetition + 1,
		})
		if err == nil {
			runs = append(runs, run)
		}
		return err
	})
	return runs, err
}

// hello fills in one run.
func hello(ctx context.Context, l *lab.Lab, run HelloRun) (HelloRun, error) {
	job := &Hello{Framework: run.Framework, Locked: run.Locked, Addr: l.Server.Addr, Window: l.Window}
	before, err := l.Server.Used(ctx)
	if err != nil {
		return run, err
	}
	name := run.Framework
	if run.Locked {
		name += " locked"
	}
	outcomes, err := child.Run[HelloOutcome](ctx, []child.Job{job}, child.Options{
		Begin: func() (err error) {
			before, err = l.Server.Used(ctx)
			return err
		},
		Profile: l.Profile(HelloSuite, name, run.Repetition-1),
	})
	if err != nil {
		return run, err
	}
	after, err := l.Server.Used(ctx)
	if err != nil {
		return run, err
	}
	o := outcomes[0]
	each := func(n float64) float64 { return n / float64(o.Requests) }
	run.RequestsPerSecond = float64(o.Requests) / l.Window.Seconds()
	run.TimeP50, run.TimeP99 = micros(o.Times.Quantile(0.50)), micros(o.Times.Quantile(0.99))
	run.CPU = each(micros(o.Used.CPU))
	run.ServerCPU = each(micros(after.Since(before).CPU))
	run.Allocations = each(float64(o.Used.Allocations))
	run.RedisCommands = each(float64(o.Commands))
	return run, nil
}

// A MiddlewareRun is one Middleware, once.
type MiddlewareRun struct {
	Framework  string
	Repetition int
	MiddlewareOutcome
}

// RunMiddleware runs all frameworks, in turns.
func RunMiddleware(ctx context.Context, l *lab.Lab) ([]MiddlewareRun, error) {
	var runs []MiddlewareRun
	frameworks := Frameworks()
	err := l.Turns(MiddlewareSuite, len(frameworks), func(repetition, contestant int) error {
		framework := frameworks[contestant]
		job := &Middleware{Framework: framework, Addr: l.Server.Addr, Window: l.Window}
		outcomes, err := child.Run[MiddlewareOutcome](ctx, []child.Job{job}, child.Options{
			Profile: l.Profile(MiddlewareSuite, framework, repetition),
		})
		if err == nil {
			runs = append(runs, MiddlewareRun{framework, repetition + 1, outcomes[0]})
		}
		return err
	})
	return runs, err
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
