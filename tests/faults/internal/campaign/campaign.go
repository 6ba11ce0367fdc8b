package campaign

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"

	"github.com/reqlock/reqlock/tests/faults/internal/fault"
	"github.com/reqlock/reqlock/tests/faults/internal/validate"
)

// A campaign is a number of runs, and their sums. It is safe for concurrent use.
type campaign struct {
	settings Settings
	runOne   func(ctx context.Context, r Run) *Report // executes one run

	mu     sync.Mutex
	w      io.Writer
	table  Table
	failed bool // a run found a violation or failed
}

// record prints and counts a run. It ignores an interrupted one.
func (c *campaign) record(r *Report, interrupted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if interrupted {
		return
	}
	fmt.Fprintln(c.w, r)
	if r.Skipped {
		fmt.Fprint(c.w, indent(r.Log))
		return
	}
	c.table.add(r)
	if !r.isFailure() {
		return
	}
	c.failed = true
	c.reportFailure(r)
}

// reportFailure prints the violations of a run, and keeps the run in a directory.
func (c *campaign) reportFailure(r *Report) {
	fmt.Fprint(c.w, indent(lines(r.Violations)))
	if r.Failed {
		fmt.Fprint(c.w, indent(r.Log))
	}
	dir, err := r.keep(c.settings.Out)
	if err != nil {
		fmt.Fprintf(c.w, "    not all of it could be kept: %v\n", err)
	}
	fmt.Fprintf(c.w, "    kept in        %s\n    run again      %s\n", dir, r.Run.Command(c.settings.Out))
	if r.History != nil {
		fmt.Fprintf(c.w, "    validate again %s\n", commandLine("-validate", filepath.Join(dir, historyFile)))
	}
}

// A queue is a list of runs that no worker has taken yet. It is safe for concurrent use.
type queue struct {
	mu   sync.Mutex
	runs []Run
}

// next takes the first run. It returns false if the queue is empty.
func (q *queue) next() (r Run, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.runs) == 0 {
		return Run{}, false
	}
	r, q.runs = q.runs[0], q.runs[1:]
	return r, true
}

// run executes all runs, several at a time, until none is left, ctx ends, or more returns
// false. The function more must be safe for concurrent use.
//
// A run mostly waits, so several share the machine. A run on several servers, or with more
// clients than usual, needs more of the machine: at most two of them run at a time. Runs on
// a quorum count among these, one at a time: each call needs replies of most of five servers in
// time.
func (c *campaign) run(ctx context.Context, runs []Run, more func() bool) {
	light, heavy, alone := &queue{}, &queue{}, &queue{}
	for _, r := range runs {
		q := heavy
		switch {
		case r.On == fault.OnQuorum:
			q = alone
		case r.On == fault.OnServer && r.Fault.Clients == 0:
			q = light
		}
		q.runs = append(q.runs, r)
	}
	var workers sync.WaitGroup
	for i := range c.settings.Parallel {
		workers.Go(func() {
			switch i {
			case 0:
				c.drain(ctx, alone, more)
				c.drain(ctx, heavy, more)
				c.drain(ctx, light, more)
			case 1:
				c.drain(ctx, heavy, more)
				c.drain(ctx, light, more)
			default:
				c.drain(ctx, light, more)
			}
		})
	}
	workers.Wait()
}

// drain executes the runs of a queue one after the other.
func (c *campaign) drain(ctx context.Context, q *queue, more func() bool) {
	for ctx.Err() == nil && more() {
		r, ok := q.next()
		if !ok {
			return
		}
		c.record(c.runOne(ctx, r), ctx.Err() != nil)
	}
}

// controlRuns is how often the control is repeated until an update is lost.
const controlRuns = 3

// control is the negative control. Its clients write without checking their leases, and
// pause beyond them: they must lose updates of the unfenced register. Otherwise the
// campaign could not see a lost update. Nothing else may be wrong: any violation of a run
// is a failure, and so is a lost update of the fenced register.
func (c *campaign) control(ctx context.Context) error {
	r := Run{
		Fault: fault.Fault{Name: "control-careless-clients", Inject: func(*fault.System) {}},
		On:    fault.OnServer, Seed: c.settings.Seed, Careless: true,
	}
	for range controlRuns {
		report := c.runOne(ctx, r)
		switch {
		case ctx.Err() != nil:
			return nil
		case report.Failed, report.History == nil:
			fmt.Fprint(c.w, indent(report.Log))
			return errors.New("the control went wrong")
		}
		if len(report.Violations) > 0 {
			c.reportFailure(report)
			return fmt.Errorf("the control failed: careless clients explain lost updates without fences, and not what was found")
		}
		if lost := validate.LostUpdates(report.History, false); lost > 0 {
			fmt.Fprintf(c.w, "control: careless clients lost %d updates without fences, and none with fences\n", lost)
			return nil
		}
		r.Seed++
	}
	return errors.New("the control failed: careless clients lost no update, so this campaign would not see one that is lost")
}
