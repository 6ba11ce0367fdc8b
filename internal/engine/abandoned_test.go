package engine

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// The key is gone when a lease is renewed for the next waiter, before anybody ran
// under it: its attempt did not run, and must not be left as one that died.
func TestALeaseThatIsGoneBeforeItsFirstHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, c := newProcesses(1), &callers{ending: Commit}
		p.stores[0].after.set(func(transition string, _ store.Request) error {
			if transition == "begin" {
				time.Sleep(50 * time.Millisecond) // the one who asked leaves meanwhile
			}
			return nil
		})
		p.stores[0].before.set(func(transition string, _ store.Request) error {
			if transition == "renew" {
				time.Sleep(200 * time.Millisecond) // for so long that the short lease is over
			}
			return nil
		})
		short := attempt("f", WaitForever)
		short.TTL = 200 * time.Millisecond
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _ = p.engines[0].Acquire(ctx, short) }()
		synctest.Wait()
		c.join(t, p.engines[0], 1, attempt("f", WaitForever)) // a longer TTL, and else alike
		cancel()
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if len(c.ran) != 1 || c.reasons[Interrupted] != 0 {
			t.Errorf("nobody has run, and the waiter: ran %v, refused %v; transitions %v; record %c",
				c.ran, c.reasons, p.stores[0].transitions(), p.server.record("k").state)
		}
		p.checkIdle(t)
	})
}

// The same, and nobody knows whether the lease was renewed: it is given back.
func TestALeaseThatCannotBeRenewedForItsFirstHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, c := newProcesses(1), &callers{ending: Commit}
		p.stores[0].after.set(func(transition string, _ store.Request) error {
			if transition == "begin" {
				time.Sleep(50 * time.Millisecond) // the one who asked leaves meanwhile
			}
			return nil
		})
		failsFor(p.stores[0], time.Second, "renew")
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _ = p.engines[0].Acquire(ctx, attempt("f", WaitForever)) }()
		synctest.Wait()
		longer := attempt("f", WaitForever)
		longer.TTL = 20 * time.Second
		c.join(t, p.engines[0], 1, longer)
		cancel()
		time.Sleep(20 * time.Second)
		c.check(t, 1, 0, "")
		if p.stores[0].begunCount("renew") == 0 {
			t.Errorf("transitions %v", p.stores[0].transitions())
		}
		p.checkIdle(t)
	})
}

// estranges makes process 0 give up the token p0:1 whose begin was applied, and
// whose reply was lost: the caller leaves, and one of another kind is next. It
// returns once the abort of that token is under way.
func losesBeginReply(t *testing.T, p *processes, next Request) {
	t.Helper()
	p.stores[0].after.set(func(transition string, r store.Request) error {
		if transition == "begin" && r.Token == "p0:1" {
			return errNoCommitReply
		}
		return nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { _, _ = p.engines[0].Acquire(ctx, attempt("f", WaitForever)) }()
	synctest.Wait()
	go func() {
		if h, err := p.engines[0].Acquire(t.Context(), next); err == nil {
			h.BeginRelease()
		}
	}()
	synctest.Wait()
	cancel()
	synctest.Wait()
	time.Sleep(10 * time.Millisecond) // its pause is over: it gives the token up
	synctest.Wait()
}

// Another process waits, and hints at the token that is being undone: it must not
// be freed by a release that leaves its record behind.
func TestAHintDuringAnUndo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, c := newProcesses(2), &callers{ending: Commit}
		p.stores[0].before.set(func(transition string, _ store.Request) error {
			if transition == "abort" {
				time.Sleep(100 * time.Millisecond)
			}
			return nil
		})
		losesBeginReply(t, p, request(WaitForever))
		c.join(t, p.engines[1], 1, attempt("f", WaitForever)) // its question hints at the holder, p0:1
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if len(c.ran) != 1 || c.reasons[Interrupted] != 0 {
			t.Errorf("nobody has run, and the other process: ran %v, refused %v", c.ran, c.reasons)
		}
	})
}

// The same, and the abort gets no answer: then it has to be sent again, though the
// token is being released already.
func TestAnUndoThatFailsDuringAHint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(2)
		var aborts atomic.Int32
		p.stores[0].before.set(func(transition string, r store.Request) error {
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
		p.engines[0].onHint("k", "p0:1") // as of a late reply, or of another process that waits
		time.Sleep(time.Minute)
		synctest.Wait()
		if record := p.server.record("k"); record.state == 'R' {
			t.Errorf("nobody has run, and the record is %c of %s after %d aborts", record.state, record.token, aborts.Load())
			if refusal := refused(t, p.engines[1], attempt("f", 0)); refusal.Reason == Interrupted {
				t.Error("so that the next request, in any process, is told that an attempt died")
			}
		}
	})
}

// The store does not answer for longer than an abandoned attempt is aborted.
func TestAnAttemptThatNeverRanAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(2)
		back := time.Now().Add(30 * time.Second)
		p.stores[0].after.set(func(transition string, _ store.Request) error {
			if transition == "begin" {
				return errNoCommitReply
			}
			return nil
		})
		p.stores[0].before.set(func(transition string, _ store.Request) error {
			if transition != "begin" && time.Now().Before(back) {
				return errNoCommitReply
			}
			return nil
		})
		if refusal := refused(t, p.engines[0], attempt("f", 0)); refusal.Reason != Unavailable {
			t.Fatalf("%v", refusal.Reason)
		}
		time.Sleep(time.Minute)
		p.stores[0].after.set(nil)
		h, err := p.engines[0].Acquire(t.Context(), attempt("f", 0))
		if err != nil {
			t.Fatalf("it was refused as unavailable and never ran; a minute later: reason %v", reasonOf(t, err))
		}
		end(t, h, Abort)
	})
}

// Abort returns what became of it, as Commit does: also where the lease is lost.
func TestAnAbortAfterALossThatTheStoreDoesNotTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(1)
		h := hold(t, p.engines[0], attempt("f", 0))
		ctx := h.Context()
		back := time.Now().Add(11 * time.Second)
		p.stores[0].before.set(func(string, store.Request) error {
			if time.Now().Before(back) {
				return errNoCommitReply
			}
			return nil
		})
		<-ctx.Done() // the lease could not be renewed: about 10 s
		_, err := h.End(context.Background(), Abort, nil)
		if err == nil {
			t.Errorf("the store has taken nothing, and Abort returned no fault")
		}
		time.Sleep(time.Minute)
		if state := p.server.record("k").state; state != 'A' {
			t.Errorf("the store came back 1 s later; %d aborts were tried, and the record is %c", p.stores[0].begunCount("abort"), state)
		}
	})
}

// A handler that heeds the end of its context, when the engine is closed under it,
// and aborts.
func TestAnAbortAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(2)
		h := hold(t, p.engines[0], attempt("f", 0))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_ = p.engines[0].Close(ctx)
		_, err := h.End(context.Background(), Abort, nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		if state := p.server.record("k").state; state != 'A' {
			t.Errorf("Abort returned %v, and the record is %c: %d aborts were tried", err, state, p.stores[0].begunCount("abort"))
		}
	})
}

// Number tells a handler that an attempt before it died. What an attempt in between
// has aborted does not change that.
func TestARerunThatWasAborted(t *testing.T) {
	for name, policy := range map[string]bool{"rerun": true, "reject": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newProcesses(1)
				p.server.setRecord("k", fakeRecord{state: 'R', token: "dead:1", fingerprint: []byte("f"), number: 1})
				rerun := attempt("f", 0)
				rerun.Attempt.Rerun = true
				h := hold(t, p.engines[0], rerun)
				if h.Number() != 2 {
					t.Errorf("attempt %d", h.Number())
				}
				end(t, h, Abort) // it could not find out what the first one has done
				next := attempt("f", 0)
				next.Attempt.Rerun = policy
				h, err := p.engines[0].Acquire(t.Context(), next)
				if err != nil {
					return // Interrupted, for one that may not run again
				}
				if h.Number() < 2 {
					t.Errorf("attempt 1 died, and the third one runs as number %d", h.Number())
				}
				end(t, h, Commit)
			})
		})
	}
}

// Close has time, and the store comes back: what never ran is not left as what died.
func TestAnAbandonedAttemptDuringClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(2)
		back := time.Now().Add(time.Second)
		p.stores[0].after.set(func(transition string, _ store.Request) error {
			if transition == "begin" {
				return errNoCommitReply
			}
			return nil
		})
		p.stores[0].before.set(func(transition string, _ store.Request) error {
			if transition != "begin" && time.Now().Before(back) {
				return errNoCommitReply
			}
			return nil
		})
		if refusal := refused(t, p.engines[0], attempt("f", 0)); refusal.Reason != Unavailable {
			t.Fatalf("%v", refusal.Reason)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := p.engines[0].Close(ctx); err != nil {
			t.Error(err)
		}
		if state := p.server.record("k").state; state == 'R' {
			t.Errorf("closed without an error within 10 s; the store was away for 1 s; the record is %c", state)
		}
	})
}
