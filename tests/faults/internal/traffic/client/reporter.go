package client

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/tests/faults/internal/history"
	"github.com/reqlock/reqlock/tests/internal/clock"
)

// A Report is one line of the output of a client process: a call as far as it is known, a
// lag, some fast leases, or a size. A later report of the same call replaces the earlier
// one.
type Report struct {
	Call int           `json:"call"` // numbers the calls of the process
	Op   history.Op    `json:"op"`
	Lag  *history.Lag  `json:"lag,omitempty"`  // instead of a call
	Size *history.Size `json:"size,omitempty"` // instead of a call
	// FastLeases are instead of a call.
	FastLeases []history.FastLease `json:"fast_leases,omitempty"`
}

// A reporter writes reports. It is safe for concurrent use.
type reporter struct {
	process int
	to      *os.File

	mu    sync.Mutex
	calls int
}

// A call is a call that was reported.
type call struct {
	reporter *reporter
	number   int
	op       history.Op
}

// begin reports a call that is about to be made. Its time is now, unless op has one.
func (t *reporter) begin(op history.Op) *call {
	if op.Call == 0 {
		op.Call = clock.Now()
	}
	op.Process = t.process
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls++
	c := &call{t, t.calls, op}
	t.write(c)
	return c
}

// end reports the time at which the call returned, and its outcome. The caller has set all
// other fields of op.
func (c *call) end(at int64, outcome history.Outcome, err error) {
	c.op.Return, c.op.Outcome = at, outcome
	if err != nil {
		c.op.Error = shortened(err.Error())
	}
	c.reporter.mu.Lock()
	defer c.reporter.mu.Unlock()
	c.reporter.write(c)
}

// maxError bounds the reported text of an error: a line that is written to the pipe at once
// is never cut if the process dies.
const maxError = 500

func shortened(text string) string { return text[:min(len(text), maxError)] }

// lag reports that the machine did not let the process run.
func (t *reporter) lag(from, to int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.report(Report{Lag: &history.Lag{Process: t.process, From: from, To: to}})
}

// fastLeases reports the leases of a client that works at full speed.
func (t *reporter) fastLeases(some []history.FastLease) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.report(Report{FastLeases: some})
}

// size reports the largest number of goroutines so far.
func (t *reporter) size(goroutines int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.report(Report{Size: &history.Size{Process: t.process, Goroutines: goroutines, At: clock.Now()}})
}

// write reports a call. The caller holds mu.
func (t *reporter) write(c *call) { t.report(Report{Call: c.number, Op: c.op}) }

// report writes a report as one line, at once. The caller holds mu.
func (t *reporter) report(r Report) {
	line, err := json.Marshal(r)
	if err == nil {
		_, err = t.to.Write(append(line, '\n'))
	}
	if err != nil {
		panic(err) // the campaign has ended
	}
}

// outcomeOf returns the outcome of a call with ctx. An unexpected error is Failed.
func outcomeOf(ctx context.Context, err error) history.Outcome {
	if err == nil {
		return history.Done
	}
	if ended := ctx.Err(); ended != nil && errors.Is(err, ended) {
		return history.Deadline
	}
	for _, known := range []struct {
		err     error
		outcome history.Outcome
	}{
		// Specific errors come before general ones.
		{core.ErrClosed, history.Failed}, // a Locker is closed only after its clients have ended
		{core.ErrLost, history.Lost},
		{core.ErrOutcomeUnknown, history.Interrupted},
		{core.ErrUnreplayable, history.Unreplayable},
		{core.ErrMismatch, history.Mismatch},
		{core.ErrUnavailable, history.Unavailable},
		{core.ErrWaitTimeout, history.WaitTimeout},
		{core.ErrBusy, history.Busy},
	} {
		if errors.Is(err, known.err) {
			return known.outcome
		}
	}
	return history.Failed
}
