package engine

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// end ends an attempt or fails the test.
func end(t *testing.T, h *Hold, ending Ending) {
	t.Helper()
	if loss, err := h.End(context.Background(), ending, answerOf(h)); loss != NotLost || err != nil {
		t.Errorf("end: loss %v, error %v", loss, err)
	}
}

// refused returns the refusal of a request, or fails the test.
func refused(t *testing.T, e *Engine, r Request) *Refusal {
	t.Helper()
	h, err := e.Acquire(t.Context(), r)
	if err == nil {
		h.BeginRelease()
		t.Fatal("granted")
	}
	reasonOf(t, err)
	refusal, _ := err.(*Refusal) //nolint:errorlint // as reasonOf has checked
	return refusal
}

func TestDuplicateGetsAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(2)
		h := hold(t, p.engines[0], attempt("f", 0))
		if h.Number() != 1 {
			t.Errorf("attempt %d", h.Number())
		}
		end(t, h, EndCommit)
		for i, e := range p.engines {
			refusal := refused(t, e, attempt("f", 0))
			if refusal.Reason != Done || string(refusal.Record) != "answer of p0:1" {
				t.Errorf("process %d: %v with %q", i, refusal.Reason, refusal.Record)
			}
		}
		if want := []string{"begin", "commit", "begin"}; !slices.Equal(p.stores[0].transitions(), want) {
			t.Errorf("transitions %v, want %v", p.stores[0].transitions(), want)
		}
		if want := []string{"begin"}; !slices.Equal(p.stores[1].transitions(), want) {
			t.Errorf("the other's transitions %v, want %v", p.stores[1].transitions(), want)
		}
		if replayed := p.events[1].of(Replayed); len(replayed) != 1 || len(p.events[1].of(Refused)) != 0 {
			t.Errorf("events %+v", p.events[1].all())
		}
		if restored := p.events[0].of(Restored); len(restored) != 0 {
			t.Errorf("a record that was not lost is reported as restored: %+v", restored)
		}
		if committed := p.events[0].of(Committed); len(committed) != 1 || committed[0].Err != nil || committed[0].Loss != NotLost {
			t.Errorf("committed %+v", committed)
		}
		p.checkIdle(t)
	})
}

// No token serves two attempts, even of many in a row.
func TestEachAttemptHasItsOwnToken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, c := newProcesses(2), &callers{ending: EndAbort}
		for _, e := range p.engines {
			c.join(t, e, 5, attempt("f", WaitForever))
		}
		time.Sleep(time.Minute)
		c.check(t, 10, 0, "")
		slices.Sort(c.ran)
		if tokens := slices.Compact(slices.Clone(c.ran)); len(tokens) != 10 {
			t.Errorf("ran %v", c.ran)
		}
		p.checkIdle(t)
	})
}

func TestMismatchIsCheckedFirst(t *testing.T) {
	t.Parallel()
	other := func(wait time.Duration) Request { return attempt("other", wait) }
	for _, wait := range []time.Duration{0, WaitForever} {
		for name, end := range map[string]Ending{"while it runs": -1, "after it": EndCommit, "after a sealed one": EndDone} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					p, c := newProcesses(3), &callers{}
					h := hold(t, p.engines[0], attempt("f", 0))
					c.join(t, p.engines[1], 1, attempt("f", WaitForever)) // a process in which a caller waits already
					if end >= 0 {
						_, _ = h.End(t.Context(), end, nil)
					}
					for i, e := range p.engines {
						if refusal := refused(t, e, other(wait)); refusal.Reason != Mismatch {
							t.Errorf("process %d: %v", i, refusal.Reason)
						}
					}
					if end < 0 {
						_, _ = h.End(t.Context(), EndCommit, nil)
					}
					synctest.Wait()
					p.checkIdle(t)
				})
			})
		}
	}
}

// As soon as an attempt runs, callers with another request are refused.
func TestMismatchIsKnownFromTheGrant(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, c := newProcesses(1), &callers{ending: EndCommit}
		p.stores[0].before.set(func(string, storetest.AnyRequest) error { time.Sleep(time.Millisecond); return nil })
		c.join(t, p.engines[0], 1, attempt("f", WaitForever))
		begun := time.Now()
		if refusal := refused(t, p.engines[0], attempt("other", WaitForever)); refusal.Reason != Mismatch || time.Since(begun) != time.Millisecond {
			t.Errorf("%v after %v", refusal.Reason, time.Since(begun))
		}
		time.Sleep(2 * time.Second)
		c.check(t, 1, 0, "")
		p.checkIdle(t)
	})
}

func TestRecordOfDeadAttempt(t *testing.T) {
	t.Parallel()
	dead := fakeRecord{state: 'R', token: "dead:1", fingerprint: []byte("f"), number: 3}
	t.Run("rejected", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			p := newProcesses(1)
			p.server.setRecord("k", dead)
			if refusal := refused(t, p.engines[0], attempt("f", WaitForever)); refusal.Reason != Died {
				t.Errorf("%v", refusal.Reason)
			}
			if status, err := forget(p.engines[0], "another:1"); status != Changed || err != nil {
				t.Errorf("resolve of another attempt: %v, %v", status, err)
			}
			if status, err := forget(p.engines[0], "dead:1"); status != Resolved || err != nil {
				t.Errorf("resolve: %v, %v", status, err)
			}
			h := hold(t, p.engines[0], attempt("f", 0))
			if status, err := forget(p.engines[0], h.Token()); status != StillRunning || err != nil || h.Number() != 1 {
				t.Errorf("resolve beside attempt %d: %v, %v", h.Number(), status, err)
			}
			end(t, h, EndCommit)
			p.checkIdle(t)
		})
	})
	t.Run("run again", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			p := newProcesses(1)
			p.server.setRecord("k", dead)
			r := attempt("f", 0)
			r.Attempt.Rerun = true
			h := hold(t, p.engines[0], r)
			if h.Number() != 4 {
				t.Errorf("attempt %d, want 4", h.Number())
			}
			end(t, h, EndCommit)
			p.checkIdle(t)
		})
	})
	t.Run("under waiters of both kinds", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			p, c, again := newProcesses(1), &callers{}, &callers{ending: EndCommit}
			p.server.set("k", "dead:1", 3*time.Second)
			p.server.setRecord("k", dead)
			rerun := attempt("f", WaitForever)
			rerun.Attempt.Rerun = true
			c.join(t, p.engines[0], 3, attempt("f", WaitForever))
			again.join(t, p.engines[0], 3, rerun)
			time.Sleep(20 * time.Second)
			again.check(t, 1, 2, "")
			if c.reasons[Died] != 3 {
				t.Errorf("callers that may not run again: %v", c.reasons)
			}
			p.checkIdle(t)
		})
	})
}

func TestLeavingCallerBeginsNoAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(2)
		h := hold(t, p.engines[0], attempt("f", 0))
		if refusal := refused(t, p.engines[1], attempt("f", time.Second)); refusal.Reason != TimedOut {
			t.Errorf("%v", refusal.Reason)
		}
		synctest.Wait()
		if last := p.stores[1].transitions(); last[len(last)-1] != "abort" || len(p.server.queue("k")) != 0 {
			t.Errorf("transitions %v, queue %v", last, p.server.queue("k"))
		}
		end(t, h, EndCommit)
		p.checkIdle(t)
	})
}

// The caller leaves at the moment of the grant.
func TestAttemptGrantedToLeavingCallerIsAborted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(1)
		ctx, cancel := context.WithCancel(t.Context())
		p.stores[0].after.set(func(transition string, _ storetest.AnyRequest) error {
			if transition == "begin" {
				cancel()
				time.Sleep(time.Millisecond)
			}
			return nil
		})
		if _, err := p.engines[0].Acquire(ctx, attempt("f", 0)); reasonOf(t, err) == Died {
			t.Errorf("%v", err)
		}
		time.Sleep(time.Second)
		p.stores[0].after.set(nil)
		if state := p.server.record("k").state; state != 'A' {
			t.Errorf("the record is %c", state)
		}
		h := hold(t, p.engines[0], attempt("f", 0))
		if h.Number() != 1 {
			t.Errorf("attempt %d", h.Number())
		}
		end(t, h, EndCommit)
		p.checkIdle(t)
	})
}

// Mere locks of a key wait for attempts, and attempts wait for locks.
func TestAttemptsAndLocksExcludeEachOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, c := newProcesses(2), &callers{ending: EndCommit}
		var locked int
		h := hold(t, p.engines[0], request(0))
		for _, e := range p.engines {
			waiting(t, e, request(WaitForever), func(*Hold) { locked++ })
			c.join(t, e, 3, attempt("f", WaitForever))
			waiting(t, e, request(WaitForever), func(*Hold) { locked++ })
		}
		release(t, h)
		time.Sleep(time.Minute)
		c.check(t, 1, 5, "")
		if locked != 4 {
			t.Errorf("%d locks, want 4", locked)
		}
		p.checkIdle(t)
	})
}
