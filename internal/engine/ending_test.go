package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// failsFor makes a transition fail for a while, without applying it.
func failsFor(s *fakeStore, d time.Duration, transition string) {
	back := time.Now().Add(d)
	s.before.set(func(name string, _ storetest.AnyRequest) error {
		if name == transition && time.Now().Before(back) {
			return errNoCommitReply
		}
		return nil
	})
}

func TestEndingDecidesTheNextAttempt(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		ending Ending
		record rune
		next   Reason // of the next request; 0 if it runs
	}{
		{"commit", EndCommit, 'D', Done},
		{"seal", EndDone, 'U', Unreplayable},
		{"abort", EndAbort, 'A', 0},
		{"interrupt", EndUnknown, 'R', Died},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p, c := newProcesses(2), &callers{ending: EndCommit}
				h := hold(t, p.engines[0], attempt("f", 0))
				for _, e := range p.engines {
					c.join(t, e, 2, attempt("f", WaitForever))
				}
				end(t, h, test.ending)
				end(t, h, test.ending) // the second call does nothing
				if state := p.server.record("k").state; state != test.record && test.next != 0 {
					t.Errorf("the record is %c, want %c", state, test.record)
				}
				time.Sleep(10 * time.Second)
				synctest.Wait()
				ran := 0
				if test.next == 0 {
					ran, test.next = 1, Done
				}
				if len(c.ran) != ran || c.reasons[test.next] != 4-ran {
					t.Errorf("ran %v, others %v", c.ran, c.reasons)
				}
				p.checkIdle(t)
			})
		})
	}
}

func TestAbortAfterLossKeepsLaterRecord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(2)
		h := hold(t, p.engines[0], attempt("f", 0))
		p.server.set("k", "", 0)
		<-h.Context().Done()
		r := attempt("f", 0)
		r.Attempt.Rerun = true
		other := hold(t, p.engines[1], r)
		end(t, h, EndAbort)
		synctest.Wait()
		end(t, other, EndCommit)
		if refusal := refused(t, p.engines[0], r); string(refusal.Record) != "answer of "+other.Token() {
			t.Errorf("%v, %q", refusal.Reason, refusal.Record)
		}
		p.checkIdle(t)
	})
}

// An abort without a reply is sent again. Its attempt does not look like one that died.
func TestLostAbortIsResent(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]time.Duration{"waiters": WaitForever, "new callers": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p, c := newProcesses(1), &callers{ending: EndCommit}
				h := hold(t, p.engines[0], attempt("f", 0))
				if wait != 0 {
					c.join(t, p.engines[0], 3, attempt("f", wait))
				}
				failsFor(p.stores[0], time.Second, "abort")
				if _, err := h.End(context.Background(), EndAbort, nil); err == nil {
					t.Error("no fault")
				}
				if wait == 0 {
					c.join(t, p.engines[0], 1, attempt("f", 5*time.Second))
				}
				time.Sleep(20 * time.Second)
				synctest.Wait()
				if len(c.ran) != 1 || c.reasons[Died] != 0 {
					t.Errorf("ran %v, others %v", c.ran, c.reasons)
				}
				p.checkIdle(t)
			})
		})
	}
}

func TestCloseDuringAnAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(1)
		h := hold(t, p.engines[0], attempt("f", 0))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := p.engines[0].Close(ctx); err == nil {
			t.Error("closed under a holder")
		}
		end(t, h, EndCommit)
		if state := p.server.record("k").state; state != 'D' {
			t.Errorf("the record is %c", state)
		}
		if _, err := forget(p.engines[0], "dead:1"); reasonOf(t, err) != ClosedDown {
			t.Errorf("resolve: %v", err)
		}
	})
}

// An attempt with an unknown outcome keeps it after a loss.
func TestInterruptAfterLoss(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(1)
		h := hold(t, p.engines[0], attempt("f", 0))
		p.server.set("k", "", 0)
		<-h.Context().Done()
		end(t, h, EndUnknown)
		synctest.Wait()
		if refusal := refused(t, p.engines[0], attempt("f", 0)); refusal.Reason != Died {
			t.Errorf("%v", refusal.Reason)
		}
		p.checkIdle(t)
	})
}

// Only its own caller gets the answer of an attempt that was not committed.
func TestRefusedAnswerIsNotShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, c := newProcesses(1), &callers{}
		h := hold(t, p.engines[0], attempt("f", 0))
		c.join(t, p.engines[0], 3, attempt("f", WaitForever))
		// Another attempt has begun and ended before the next renewal finds the loss.
		p.server.set("k", "", 0)
		p.server.setRecord("k", fakeRecord{
			state: 'D', token: "other:1", fingerprint: []byte("f"), answer: []byte("answer of other:1"),
		})
		if loss, err := h.End(context.Background(), EndCommit, answerOf(h)); loss != Taken || err != nil {
			t.Errorf("loss %v, error %v", loss, err)
		}
		c.check(t, 0, 3, "other:1")
		p.checkIdle(t)
	})
}
