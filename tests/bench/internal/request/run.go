package request

import (
	"context"

	"github.com/reqlock/reqlock/tests/bench/internal/child"
	"github.com/reqlock/reqlock/tests/bench/internal/lab"
	"github.com/reqlock/reqlock/tests/bench/internal/service"
)

// The names of the suites.
const (
	HelloSuite      = "hello"
	MiddlewareSuite = "middleware"
)

// A HelloRun is one Hello, once.
type HelloRun struct {
	Framework  string
	Locked     bool
	Repetition int
	service.Costs
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
func hello(ctx context.Context, l *lab.Lab, run HelloRun) (_ HelloRun, err error) {
	name := run.Framework
	if run.Locked {
		name += " locked"
	}
	job := &Hello{Framework: run.Framework, Locked: run.Locked, Addr: l.Server.Addr, Window: l.Window}
	run.Costs, err = service.Measure(ctx, l, job, l.Window, l.Profile(HelloSuite, name, run.Repetition-1))
	return run, err
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
