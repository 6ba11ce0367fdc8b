package idempotent

import (
	"context"
	"fmt"

	"github.com/reqlock/reqlock/tests/bench/internal/jobprocess"
	"github.com/reqlock/reqlock/tests/bench/internal/runner"
	"github.com/reqlock/reqlock/tests/bench/internal/service"
)

// The names of the suites.
const (
	RequestsSuite = "idempotent"
	RecordsSuite  = "records"
)

// A RequestsRun is the result of one Requests.
type RequestsRun struct {
	Framework  string
	Case       Case
	Load       string
	Repetition int
	service.Costs
}

// RunRequests runs all cases of all loads on all frameworks, in alternating order. There
// are many, so a run takes a third of a window.
func RunRequests(ctx context.Context, l *runner.Runner) ([]RequestsRun, error) {
	type contestant struct {
		load      Load
		which     Case
		framework string
	}
	var contestants []contestant
	for _, load := range Loads() {
		for _, which := range load.Cases() {
			for _, framework := range Frameworks() {
				contestants = append(contestants, contestant{load, which, framework})
			}
		}
	}
	window := l.Window / 3
	var runs []RequestsRun
	err := l.Repeat(RequestsSuite, len(contestants), func(repetition, i int) error {
		c := contestants[i]
		if err := l.Server.Clear(ctx); err != nil {
			return err
		}
		job := &Requests{
			Framework: c.framework, Case: c.which, Callers: c.load.Callers, OneKey: c.load.OneKey,
			Addr: l.Server.Addr, Window: window,
		}
		name := fmt.Sprintf("%s %s %s", c.framework, c.which, c.load.Name)
		costs, err := service.Measure(ctx, l, job, window, l.Profile(RequestsSuite, name, repetition))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		runs = append(runs, RequestsRun{c.framework, c.which, c.load.Name, repetition + 1, costs})
		return nil
	})
	return runs, err
}

// Answers returns the sizes of answers whose records are measured.
func Answers() []int { return []int{smallAnswer, 4096} }

// mostRecords is how many records are measured together.
const mostRecords = 1000

// A RecordsRun is the result of one Records.
type RecordsRun struct {
	Framework  string // the framework of the middleware
	Answer     int    // bytes
	Repetition int
	Bytes      float64 // memory of Redis for each record, including everything that belongs to it
	Keys       float64 // in Redis, for each record
}

// RecordFrameworks returns one framework for each middleware. The record of reqlock does
// not depend on the framework.
func RecordFrameworks() []string { return []string{NetHTTP, Fiber} }

// RunRecords measures the records of both middlewares, in alternating order.
func RunRecords(ctx context.Context, l *runner.Runner) ([]RecordsRun, error) {
	var runs []RecordsRun
	frameworks, answers := RecordFrameworks(), Answers()
	err := l.Repeat(RecordsSuite, len(frameworks)*len(answers), func(repetition, i int) error {
		run, err := records(ctx, l, RecordsRun{
			Framework:  frameworks[i%len(frameworks)],
			Answer:     answers[i/len(frameworks)],
			Repetition: repetition + 1,
		})
		if err == nil {
			runs = append(runs, run)
		}
		return err
	})
	return runs, err
}

// records fills in one run.
func records(ctx context.Context, l *runner.Runner, run RecordsRun) (RecordsRun, error) {
	if err := l.Server.Clear(ctx); err != nil {
		return run, err
	}
	job := &Records{Framework: run.Framework, Answer: run.Answer, Records: min(mostRecords, l.Largest), Addr: l.Server.Addr}
	outcomes, err := jobprocess.Run[RecordsOutcome](ctx, []jobprocess.Job{job}, jobprocess.Options{
		Profile: l.Profile(RecordsSuite, fmt.Sprintf("%s %d", run.Framework, run.Answer), run.Repetition-1),
	})
	if err != nil {
		return run, err
	}
	bytes, keys, err := l.Server.MeasureMemory(ctx)
	if err != nil {
		return run, err
	}
	made := outcomes[0].Handled
	if keys < made {
		return run, fmt.Errorf("%s: of %d records %d are there", run.Framework, made, keys)
	}
	run.Bytes, run.Keys = float64(bytes)/float64(made), float64(keys)/float64(made)
	return run, nil
}
