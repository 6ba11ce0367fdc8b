package engine

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// A lease is renewed for the next waiter before any caller ran under it, and the key is gone, or it
// is unknown whether the lease was renewed. Its attempt did not run, so its record must not look as
// if it had died.
func TestFailedRenewalBeforeFirstHolderAbortsAttempt(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		ttl  time.Duration // of the first caller
		fail func(s *fakeStore)
	}{
		"the key is gone": {200 * time.Millisecond, func(s *fakeStore) { s.before.set(delays(200*time.Millisecond, "renew")) }},
		"unknown":         {5 * time.Second, func(s *fakeStore) { failsFor(s, time.Second, "renew") }},
	} {
		row(t, name, func(t *testing.T) {
			p, c := newProcesses(1), &callers{ending: EndCommit}
			p.stores[0].after.set(delays(50*time.Millisecond, "begin")) // the caller that asked leaves meanwhile
			test.fail(p.stores[0])
			short := attempt("f", WaitForever)
			short.TTL = test.ttl
			cancel := leaving(t, p.engines[0], short)
			c.join(t, p.engines[0], 1, attempt("f", WaitForever)) // a longer TTL, otherwise the same request
			cancel()
			time.Sleep(20 * time.Second)
			c.check(t, 1, 0, "")
			if p.stores[0].begunCount("renew") == 0 || c.reasons[Died] != 0 {
				t.Errorf("refused %v; transitions %v", c.reasons, p.stores[0].transitions())
			}
			p.checkIdle(t)
		})
	}
}

// losesBeginReply makes process 0 give up the token p0:1. The begin of that token was
// applied, but its reply was lost; the caller leaves, and the next caller has a
// different request. It returns while the abort of the token is in flight.
func losesBeginReply(t *testing.T, p *processes, next Request) {
	t.Helper()
	p.stores[0].after.set(func(transition string, r storetest.AnyRequest) error {
		if transition == "begin" && r.Token == "p0:1" {
			return errNoCommitReply
		}
		return nil
	})
	cancel := leaving(t, p.engines[0], attempt("f", WaitForever))
	go func() {
		if h, err := p.engines[0].Acquire(t.Context(), next); err == nil {
			h.BeginRelease()
		}
	}()
	synctest.Wait()
	cancel()
	synctest.Wait()
	sleep(10 * time.Millisecond) // the pause ends, and the queue gives the token up
}

// Another process waits, and sends a hint of the token that is being aborted. A release
// without the attempt would free the key and leave the record behind.
func TestHintDuringAbortKeepsRecordRight(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, c := newProcesses(2), &callers{ending: EndCommit}
		p.stores[0].before.set(delays(100*time.Millisecond, "abort"))
		losesBeginReply(t, p, request(WaitForever))
		c.join(t, p.engines[1], 1, attempt("f", WaitForever)) // its request sends a hint to the holder, p0:1
		sleep(20 * time.Second)
		if len(c.ran) != 1 || c.reasons[Died] != 0 {
			t.Errorf("no caller has run; the other process: ran %v, refused %v", c.ran, c.reasons)
		}
	})
}

// As before, but the abort gets no reply. It has to be sent again, although the token
// is being released already.
func TestFailedAbortDuringHintIsResent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(2)
		var aborts atomic.Int32
		p.stores[0].before.set(func(transition string, r storetest.AnyRequest) error {
			switch transition {
			case "abort":
				time.Sleep(100 * time.Millisecond)
				if aborts.Add(1) == 1 {
					return errNoCommitReply
				}
			case "release":
				if r.Token == "p0:1" {
					time.Sleep(200 * time.Millisecond) // the discard of the hint
				}
			}
			return nil
		})
		losesBeginReply(t, p, request(WaitForever))
		p.engines[0].onHint("k", "p0:1") // as after a late reply, or from another process that waits
		sleep(time.Minute)
		if record := p.server.record("k"); record.state == 'R' {
			t.Errorf("no caller has run, and the record is %c of %s after %d aborts", record.state, record.token, aborts.Load())
			if refusal := refused(t, p.engines[1], attempt("f", 0)); refusal.Reason == Died {
				t.Error("the next request, in any process, is refused because an attempt died")
			}
		}
	})
}

// refusedDuringOutage returns a process that has begun an attempt without a reply, and that refused
// it. All other transitions fail during the outage.
func refusedDuringOutage(t *testing.T, outage time.Duration) *processes {
	t.Helper()
	p := newProcesses(1)
	back := time.Now().Add(outage)
	p.stores[0].after.set(fails(errNoCommitReply, "begin"))
	p.stores[0].before.set(func(transition string, _ storetest.AnyRequest) error {
		if transition != "begin" && time.Now().Before(back) {
			return errNoCommitReply
		}
		return nil
	})
	if refusal := refused(t, p.engines[0], attempt("f", 0)); refusal.Reason != Unavailable {
		t.Fatalf("%v", refusal.Reason)
	}
	return p
}

// The store does not answer for longer than an attempt that was given up is aborted.
func TestAttemptThatNeverRanIsAbortedAfterOutage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := refusedDuringOutage(t, 30*time.Second)
		time.Sleep(time.Minute)
		p.stores[0].after.set(nil)
		end(t, hold(t, p.engines[0], attempt("f", 0)), EndAbort)
	})
}

// Abort returns its result, as Commit does, also after the loss of the lease.
func TestFailedAbortAfterLossReturnsFault(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(1)
		h := hold(t, p.engines[0], attempt("f", 0))
		back := time.Now().Add(11 * time.Second)
		p.stores[0].before.set(failsUntil(back, errNoCommitReply))
		<-h.Context().Done() // the lease could not be renewed for about 10 s
		_, err := h.End(context.Background(), EndAbort, nil)
		if err == nil {
			t.Errorf("the store has taken nothing, and Abort returned no fault")
		}
		time.Sleep(time.Minute)
		if state := p.server.record("k").state; state != 'A' {
			t.Errorf("the store came back 1 s later; %d aborts were sent, and the record is %c", p.stores[0].begunCount("abort"), state)
		}
	})
}

// Number tells a handler that an earlier attempt died. An attempt in between that was
// aborted does not change that.
func TestAbortedRerunKeepsNumber(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]bool{"rerun": true, "reject": false} {
		row(t, name, func(t *testing.T) {
			p := newProcesses(1)
			p.server.setRecord("k", fakeRecord{state: 'R', token: "dead:1", fingerprint: []byte("f"), number: 1})
			rerun := attempt("f", 0)
			rerun.Attempt.Rerun = true
			h := hold(t, p.engines[0], rerun)
			if h.Number() != 2 {
				t.Errorf("attempt %d", h.Number())
			}
			end(t, h, EndAbort) // it could not find out what the first attempt did
			next := attempt("f", 0)
			next.Attempt.Rerun = policy
			h, err := p.engines[0].Acquire(t.Context(), next)
			if err != nil {
				return // Interrupted: this attempt may not run again
			}
			if h.Number() < 2 {
				t.Errorf("attempt 1 died, and the third one runs as number %d", h.Number())
			}
			end(t, h, EndCommit)
		})
	}
}

// Close has time, and the store comes back. An attempt that never ran must not look
// like one that died.
func TestCloseAbortsAttemptThatNeverRan(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := refusedDuringOutage(t, time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := p.engines[0].Close(ctx); err != nil {
			t.Error(err)
		}
		if state := p.server.record("k").state; state == 'R' {
			t.Errorf("closed without an error; the record is %c", state)
		}
	})
}

// A begin was applied, its reply was lost, and its caller has left. Redis is away until the key has
// expired, so the record looks as if the attempt had died. This process knows that it did not run: a
// copy that comes before the abort is refused as in an outage, or waits, and then it runs.
func TestCopyBeforeAbortIsNotInterrupted(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]time.Duration{"a copy that may not wait": 0, "a copy that waits": WaitForever} {
		row(t, name, func(t *testing.T) {
			p, c := newProcesses(1), &callers{ending: EndCommit}
			p.stores[0].after.set(fails(errNoCommitReply, "begin"))
			p.stores[0].before.set(fails(errDown, "abort"))
			refuses(t, p.engines[0], attempt("f", 0), Unavailable)
			p.stores[0].after.set(nil)
			sleep(20 * time.Second)
			c.join(t, p.engines[0], 1, attempt("f", wait))
			if n := len(p.events[0].of(OutcomeUnknown)); c.reasons[Died] != 0 || c.reasons[Unavailable] != len(c.reasons) || n != 0 {
				t.Errorf("refused %v, %d unknown outcomes", c.reasons, n)
			}
			p.stores[0].before.set(nil)
			sleep(time.Second)
			if wait == 0 {
				c.join(t, p.engines[0], 1, attempt("f", 0))
			}
			sleep(2 * time.Second)
			c.check(t, 1, 0, "")
			p.checkIdle(t)
		})
	}
}
