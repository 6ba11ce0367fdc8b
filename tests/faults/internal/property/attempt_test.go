package property

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/reqlock/reqlock/core"
)

// An attemptTest tests one idempotent request. No call waits, so each step has one right
// result, or two while a lease has ended and its key may not have expired.
type attemptTest struct {
	*rapid.T
	table  *deployment
	policy core.Policy

	open     []*runningAttempt // attempts that run
	last     *runningAttempt   // the attempt whose record it is, until it is done or aborted
	dead     int               // attempts that died since one was done or aborted
	answer   string            // of the attempt that is done
	answered int               // the number of answers so far
}

// A runningAttempt is an attempt that runs.
type runningAttempt struct {
	attempt *core.Attempt
	since   time.Time // the latest time at which its lease was extended
	renewed bool
}

func TestAttempts(t *testing.T) {
	for name, policy := range map[string]core.Policy{"reject": core.Reject, "rerun": core.Rerun} {
		for _, renewed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, renewed %v", name, renewed), func(t *testing.T) {
				checkSequences(t, func(rt *rapid.T, table *deployment) {
					testAttempts(rt, table, policy, renewed)
				}, core.WithInterrupted(policy), core.WithWait(0), core.WithRenewal(renewed))
			})
		}
	}
}

func testAttempts(rt *rapid.T, table *deployment, policy core.Policy, renewed bool) {
	g := &attemptTest{T: rt, table: table, policy: policy}
	rt.Repeat(map[string]func(*rapid.T){
		"begin":     func(*rapid.T) { g.begin(renewed) },
		"commit":    func(*rapid.T) { g.commit(g.any()) },
		"abort":     func(*rapid.T) { g.abort(g.any()) },
		"interrupt": func(*rapid.T) { g.interrupt(g.any()) },
		"advance": func(*rapid.T) {
			time.Sleep(time.Duration(rapid.IntRange(1, 12_000).Draw(rt, "ms")) * time.Millisecond)
		},
		"lose a reply": func(*rapid.T) { table.anyProcess(rt).network.loseNextReply() },
		"restart": func(*rapid.T) {
			for len(g.open) > 0 { // the fault campaign tests attempts that survive a restart
				g.interrupt(0)
			}
			table.server.FlushAll()
			g.last, g.dead, g.answer = nil, 0, ""
		},
		"": func(*rapid.T) { g.check() },
	})
}

// any draws a running attempt.
func (g *attemptTest) any() int {
	if len(g.open) == 0 {
		g.Skip("no attempt runs")
	}
	return rapid.IntRange(0, len(g.open)-1).Draw(g.T, "who")
}

// held reports whether the lock of an attempt is certainly held, and whether it is
// certainly free. Neither is certain while the lease has ended and the key may not have
// expired.
func (r *runningAttempt) held() (certain, free bool) {
	certain = r.attempt.Lease().Context().Err() == nil
	return certain, !certain && !r.renewed && time.Since(r.since) >= ttl
}

func (g *attemptTest) begin(renewed bool) {
	attempt, err := g.table.anyProcess(g.T).locks.Begin(context.Background(), "order", nil)
	synctest.Wait()
	if g.answer != "" {
		if err != nil {
			g.Fatalf("done, and begin: %v", err)
		}
		if answer, done := attempt.Replay(); !done || string(answer) != g.answer {
			g.Fatalf("got %q, %v; want %q", answer, done, g.answer)
		}
		return
	}
	held, free := false, true
	if g.last != nil {
		held, free = g.last.held()
	}
	switch {
	case errors.Is(err, core.ErrBusy) && !free:
	case held:
		g.Fatalf("begun beside another: %v", err)
	case g.last == nil && g.dead == 0, g.policy == core.Rerun:
		g.run(attempt, err, renewed)
	case !errors.Is(err, core.ErrInterrupted):
		g.Fatalf("begun after one that died: %v", err)
	}
}

// run adds an attempt that must run.
func (g *attemptTest) run(attempt *core.Attempt, err error, renewed bool) {
	if err != nil {
		g.Fatalf("begin: %v", err)
	}
	if _, done := attempt.Replay(); done {
		g.Fatal("got an answer that was not committed")
	}
	if g.last != nil {
		g.dead++ // its lease ended
	}
	if attempt.Number() != g.dead+1 {
		g.Fatalf("number %d after %d died", attempt.Number(), g.dead)
	}
	g.last = &runningAttempt{attempt, time.Now(), renewed}
	g.open = append(g.open, g.last)
}

// take removes a running attempt, and reports whether the record is still that attempt's.
func (g *attemptTest) take(i int) (r *runningAttempt, current bool) {
	r = g.open[i]
	g.open = append(g.open[:i], g.open[i+1:]...)
	return r, r == g.last
}

func (g *attemptTest) commit(i int) {
	r, current := g.take(i)
	g.answered++
	answer := fmt.Sprintf("answer %d", g.answered)
	err := r.attempt.Commit(context.Background(), []byte(answer))
	switch {
	case current && err != nil:
		g.Fatalf("commit: %v", err)
	case !current && !errors.Is(err, core.ErrLost):
		g.Fatalf("commit after another has begun: %v", err)
	case current:
		g.last, g.dead, g.answer = nil, 0, answer
	}
}

func (g *attemptTest) abort(i int) {
	r, current := g.take(i)
	if err := r.attempt.Abort(context.Background()); err != nil {
		g.Fatalf("abort: %v", err)
	}
	if current {
		g.last = nil
	}
}

func (g *attemptTest) interrupt(i int) {
	r, current := g.take(i)
	if err := r.attempt.Interrupt(context.Background()); err != nil {
		g.Fatalf("interrupt: %v", err)
	}
	if current {
		g.last = nil
		g.dead++
	}
}

// check waits until all goroutines block, and checks that at most one attempt runs.
func (g *attemptTest) check() {
	synctest.Wait()
	for _, r := range g.open {
		lease := r.attempt.Lease()
		if lease.Context().Err() != nil {
			continue
		}
		if r != g.last {
			g.Fatal("two run at once")
		}
		if !time.Now().Before(lease.ValidUntil()) {
			g.Fatalf("a lease is over since %v, and its context goes on", time.Since(lease.ValidUntil()))
		}
	}
}
