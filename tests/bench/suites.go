package main

import (
	"context"
	"io"

	"github.com/reqlock/reqlock/tests/bench/internal/compare"
	"github.com/reqlock/reqlock/tests/bench/internal/growth"
	"github.com/reqlock/reqlock/tests/bench/internal/idempotent"
	"github.com/reqlock/reqlock/tests/bench/internal/report"
	"github.com/reqlock/reqlock/tests/bench/internal/request"
	"github.com/reqlock/reqlock/tests/bench/internal/runner"
)

// A suite measures one thing and prints its table.
type suite struct {
	name  string
	run   func(context.Context, *runner.Runner, *report.Results) error
	print func(io.Writer, *report.Results)
}

// suites returns all suites, in the order in which they run.
func suites() (all []suite) {
	for _, s := range compare.Suites() {
		all = append(all, suite{
			name: s.Name,
			run: func(ctx context.Context, l *runner.Runner, r *report.Results) error {
				runs, err := s.Run(ctx, l)
				r.Comparisons = append(r.Comparisons, runs...)
				return err
			},
			print: func(w io.Writer, r *report.Results) { r.PrintComparison(w, s) },
		})
	}
	return append(all,
		suite{
			name: request.MiddlewareSuite,
			run: func(ctx context.Context, l *runner.Runner, r *report.Results) (err error) {
				r.Middlewares, err = request.RunMiddleware(ctx, l)
				return err
			},
			print: func(w io.Writer, r *report.Results) { r.PrintMiddlewares(w) },
		},
		suite{
			name: request.FrameworksSuite,
			run: func(ctx context.Context, l *runner.Runner, r *report.Results) (err error) {
				r.Frameworks, err = request.RunFrameworks(ctx, l)
				return err
			},
			print: func(w io.Writer, r *report.Results) { r.PrintFrameworks(w) },
		},
		suite{
			name: idempotent.RequestsSuite,
			run: func(ctx context.Context, l *runner.Runner, r *report.Results) (err error) {
				r.Idempotent, err = idempotent.RunRequests(ctx, l)
				return err
			},
			print: func(w io.Writer, r *report.Results) { r.PrintIdempotent(w) },
		},
		suite{
			name: idempotent.RecordsSuite,
			run: func(ctx context.Context, l *runner.Runner, r *report.Results) (err error) {
				r.Records, err = idempotent.RunRecords(ctx, l)
				return err
			},
			print: func(w io.Writer, r *report.Results) { r.PrintRecords(w) },
		},
		suite{
			name: growth.KeysSuite,
			run: func(ctx context.Context, l *runner.Runner, r *report.Results) (err error) {
				r.Keys, err = growth.RunKeys(ctx, l)
				return err
			},
			print: func(w io.Writer, r *report.Results) { r.PrintKeys(w) },
		},
		suite{
			name: growth.WaitersSuite,
			run: func(ctx context.Context, l *runner.Runner, r *report.Results) (err error) {
				r.Waiters, err = growth.RunWaiters(ctx, l)
				return err
			},
			print: func(w io.Writer, r *report.Results) { r.PrintWaiters(w) },
		})
}
