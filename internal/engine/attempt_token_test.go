package engine

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// A lock that waits behind an attempt gets only the key from it, and no lease or token,
// and an attempt gets only the key from a lock.
func TestAttemptEndsBeforeLockIsTaken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, c := newProcesses(1), &callers{ending: EndCommit}
		h := hold(t, p.engines[0], attempt("f", 0))
		waiting(t, p.engines[0], request(WaitForever), func(*Hold) {})
		end(t, h, EndCommit)
		synctest.Wait()
		h = hold(t, p.engines[0], request(0))
		c.join(t, p.engines[0], 1, attempt("g", WaitForever))
		release(t, h)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		want := []string{"begin", "commit", "take", "release", "take", "release", "begin"}
		if got := p.stores[0].transitions(); !slices.Equal(got, want) {
			t.Errorf("transitions %v, want %v", got, want)
		}
		if c.reasons[Mismatch] != 1 {
			t.Errorf("the other attempt: %v", c.reasons)
		}
		p.checkIdle(t)
	})
}

// The token was used for a request that has left. The next request is another attempt,
// and gets another token.
func TestAnotherRequestGetsAnotherToken(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]Request{"another attempt": attempt("g", WaitForever), "a lock": request(WaitForever)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newProcesses(1)
				p.server.set("k", "foreign", 10*time.Second)
				ctx, cancel := context.WithCancel(t.Context())
				go func() { _, _ = p.engines[0].Acquire(ctx, attempt("f", WaitForever)) }()
				synctest.Wait()
				first := p.server.queue("k")
				got := ""
				waiting(t, p.engines[0], next, func(h *Hold) { got = h.Token() })
				cancel()
				time.Sleep(20 * time.Second)
				synctest.Wait()
				if len(first) != 1 || got == "" || got == first[0] {
					t.Errorf("the first was queued as %v, the other ran as %q", first, got)
				}
				if p.stores[0].count("abort") == 0 {
					t.Errorf("transitions %v", p.stores[0].transitions())
				}
				p.checkIdle(t)
			})
		})
	}
}

// The caller for which the queue asked leaves while the reply is on its way.
func TestGrantServesOnlyItsRequest(t *testing.T) {
	t.Parallel()
	rerun := attempt("f", WaitForever)
	rerun.Attempt.Rerun = true
	longer := attempt("f", WaitForever)
	longer.Attempt.Keep = 2 * time.Hour
	referred := attempt("f", WaitForever)
	referred.Attempt.Reference = "trace 2"
	for name, test := range map[string]struct {
		first, second Request
		undone        string
	}{
		"an attempt, then a lock":      {attempt("f", WaitForever), request(WaitForever), "abort"},
		"an attempt, then another one": {attempt("f", WaitForever), attempt("g", WaitForever), "abort"},
		"one that would run again":     {attempt("f", WaitForever), rerun, "abort"},
		"one that is kept for longer":  {attempt("f", WaitForever), longer, "abort"},
		"one with another reference":   {attempt("f", WaitForever), referred, "abort"},
		"a lock, then an attempt":      {request(WaitForever), attempt("f", WaitForever), "release"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newProcesses(1)
				p.stores[0].after.set(func(string, storetest.AnyRequest) error { time.Sleep(100 * time.Millisecond); return nil })
				ctx, cancel := context.WithCancel(t.Context())
				go func() { _, _ = p.engines[0].Acquire(ctx, test.first) }()
				synctest.Wait()
				var got string
				waiting(t, p.engines[0], test.second, func(h *Hold) { got = h.Token() })
				cancel()
				time.Sleep(time.Second)
				synctest.Wait()
				if got != "p0:2" || p.stores[0].transitions()[1] != test.undone {
					t.Errorf("ran as %q, transitions %v", got, p.stores[0].transitions())
				}
				p.checkIdle(t)
			})
		})
	}
}

func TestMismatchOfOneCallerRefusesNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, wrong, right := newProcesses(1), &callers{}, &callers{}
		end(t, hold(t, p.engines[0], attempt("f", 0)), EndCommit)
		p.stores[0].before.set(func(string, storetest.AnyRequest) error { time.Sleep(time.Millisecond); return nil })
		wrong.join(t, p.engines[0], 3, attempt("g", WaitForever))
		right.join(t, p.engines[0], 3, attempt("f", WaitForever))
		time.Sleep(time.Second)
		right.check(t, 0, 3, "p0:1")
		if wrong.reasons[Mismatch] != 3 {
			t.Errorf("callers with another fingerprint: %v", wrong.reasons)
		}
		p.checkIdle(t)
	})
}

// An attempt has lost its lease, and another client has freed the key: it is not known
// yet which attempt comes next.
func TestAnotherRequestAfterLoss(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, c := newProcesses(1), &callers{ending: EndCommit}
		h := hold(t, p.engines[0], attempt("f", 0))
		c.join(t, p.engines[0], 1, attempt("f", WaitForever))
		p.server.set("k", "foreign", 5*time.Second)
		p.server.setRecord("k", fakeRecord{})
		p.stores[0].before.set(func(string, storetest.AnyRequest) error { time.Sleep(100 * time.Millisecond); return nil })
		<-h.Context().Done()
		if refusal := refused(t, p.engines[0], attempt("g", 0)); refusal.Reason != Busy {
			t.Errorf("another request: %v", refusal.Reason)
		}
		end(t, h, EndUnknown)
		time.Sleep(20 * time.Second)
		c.check(t, 1, 0, "")
		p.checkIdle(t)
	})
}

// While an attempt is being aborted, it is not known yet which attempt comes next.
func TestAnotherRequestDuringAbort(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, c := newProcesses(1), &callers{ending: EndAbort}
		h := hold(t, p.engines[0], attempt("f", 0))
		p.stores[0].before.set(func(string, storetest.AnyRequest) error { time.Sleep(time.Millisecond); return nil })
		h.BeginRelease()
		c.join(t, p.engines[0], 1, attempt("g", WaitForever))
		time.Sleep(2 * time.Second)
		c.check(t, 1, 0, "")
		p.checkIdle(t)
	})
}

func TestLateGrantOfAttemptIsAborted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(1)
		p.stores[0].after.set(func(transition string, _ storetest.AnyRequest) error {
			if transition == "begin" && p.stores[0].count("begin") == 1 {
				time.Sleep(10 * time.Second)
			}
			return nil
		})
		h := hold(t, p.engines[0], attempt("f", WaitForever))
		if h.Number() != 1 || p.stores[0].count("abort") != 1 {
			t.Errorf("attempt %d, transitions %v", h.Number(), p.stores[0].transitions())
		}
		end(t, h, EndCommit)
		p.checkIdle(t)
		if n := p.stores[0].count("abort"); n != 1 {
			t.Errorf("%d aborts", n)
		}
	})
}

// The abort of a late grant fails, and the caller leaves. The abort is sent again, so that
// the attempt does not look like one that died.
func TestFailedAbortOfLateGrantIsResent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(1)
		delaysOnce(p.stores[0], "begin", 10*time.Second)
		back := time.Now().Add(11 * time.Second)
		p.stores[0].before.set(func(transition string, _ storetest.AnyRequest) error {
			if transition == "abort" && time.Now().Before(back) {
				return errDown
			}
			return nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if _, err := p.engines[0].Acquire(ctx, attempt("f", WaitForever)); err == nil {
			t.Error("granted")
		}
		time.Sleep(5 * time.Second)
		h := hold(t, p.engines[0], attempt("f", 0))
		end(t, h, EndCommit)
		p.checkIdle(t)
	})
}
