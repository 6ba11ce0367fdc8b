package request

import (
	"context"

	"github.com/reqlock/reqlock/tests/bench/internal/jobprocess"
	"github.com/reqlock/reqlock/tests/bench/internal/runner"
	"github.com/reqlock/reqlock/tests/bench/internal/service"
)

// The names of the suites.
const (
	FrameworksSuite = "frameworks"
	MiddlewareSuite = "middleware"
)

// A FrameworkRun is the result of one FrameworkLoad.
type FrameworkRun struct {
	Framework  string
	Locked     bool
	Repetition int
	service.Costs
}

// RunFrameworks runs all frameworks with and without the lock, in alternating order.
func RunFrameworks(ctx context.Context, l *runner.Runner) ([]FrameworkRun, error) {
	var runs []FrameworkRun
	frameworks := Frameworks()
	err := l.Repeat(FrameworksSuite, 2*len(frameworks), func(repetition, contestant int) error {
		run, err := measureFramework(ctx, l, FrameworkRun{
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

// measureFramework does one run.
func measureFramework(ctx context.Context, l *runner.Runner, run FrameworkRun) (_ FrameworkRun, err error) {
	name := run.Framework
	if run.Locked {
		name += " locked"
	}
	job := &FrameworkLoad{Framework: run.Framework, Locked: run.Locked, Addr: l.Server.Addr, Window: l.Window}
	run.Costs, err = service.Measure(ctx, l, job, l.Window, l.Profile(FrameworksSuite, name, run.Repetition-1))
	return run, err
}

// A MiddlewareRun is the result of one Middleware.
type MiddlewareRun struct {
	Framework  string
	Repetition int
	MiddlewareOutcome
}

// RunMiddleware runs all frameworks, in alternating order.
func RunMiddleware(ctx context.Context, l *runner.Runner) ([]MiddlewareRun, error) {
	var runs []MiddlewareRun
	frameworks := Frameworks()
	err := l.Repeat(MiddlewareSuite, len(frameworks), func(repetition, contestant int) error {
		framework := frameworks[contestant]
		job := &Middleware{Framework: framework, Addr: l.Server.Addr, Window: l.Window}
		outcomes, err := jobprocess.Run[MiddlewareOutcome](ctx, []jobprocess.Job{job}, jobprocess.Options{
			Profile: l.Profile(MiddlewareSuite, framework, repetition),
		})
		if err == nil {
			runs = append(runs, MiddlewareRun{framework, repetition + 1, outcomes[0]})
		}
		return err
	})
	return runs, err
}
