package engine

import (
	"context"
	"slices"
	"sync"
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

// callers are several callers with the same request, and their results. A caller that
// gets the lease ends its attempt after a second, with the ending.
type callers struct {
	ending  Ending
	mu      sync.Mutex
	ran     []string // tokens
	reasons map[Reason]int
	answers []string
}

// join starts n callers, and waits until all are in the queue.
func (c *callers) join(t *testing.T, e *Engine, n int, r Request) {
	for range n {
		go func() {
			h, err := e.Acquire(t.Context(), r)
			if err == nil {
				time.Sleep(time.Second)
				c.note(func() { c.ran = append(c.ran, h.Token()) })
				end(t, h, c.ending)
				return
			}
			refusal, _ := err.(*Refusal) //nolint:errorlint // Acquire promises the type itself
			c.note(func() {
				if c.reasons == nil {
					c.reasons = make(map[Reason]int)
				}
				c.reasons[refusal.Reason]++
				if refusal.Reason == Done {
					c.answers = append(c.answers, string(refusal.Record))
				}
			})
		}()
	}
	synctest.Wait()
}

func (c *callers) note(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

// check fails the test unless this many callers ran, and this many got the answer of
// the token.
func (c *callers) check(t *testing.T, ran, replayed int, token string) {
	t.Helper()
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if token == "" && len(c.ran) > 0 {
		token = c.ran[0]
	}
	if len(c.ran) != ran || c.reasons[Done] != replayed {
		t.Errorf("ran %v, others %v; want %d and %d that got the answer", c.ran, c.reasons, ran, replayed)
	}
	for _, got := range c.answers {
		if got != "answer of "+token {
			t.Errorf("got %q, want that of %q", got, token)
		}
	}
}

func TestDuplicateGetsAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(2)
		h := hold(t, p.engines[0], attempt("f", 0))
		if h.Number() != 1 {
			t.Errorf("attempt %d", h.Number())
		}
		end(t, h, Commit)
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

func TestWaitingDuplicatesShareOneAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, c := newProcesses(3), &callers{}
		h := hold(t, p.engines[0], attempt("f", 0))
		for _, e := range p.engines {
			c.join(t, e, 30, attempt("f", WaitForever))
		}
		end(t, h, Commit)
		time.Sleep(time.Second)
		c.check(t, 0, 90, "p0:1")
		if want := []string{"begin", "commit"}; !slices.Equal(p.stores[0].transitions(), want) {
			t.Errorf("transitions %v, want %v", p.stores[0].transitions(), want)
		}
		for i := 1; i < 3; i++ { // asks, takes a place in the store's queue, gets the answer
			if want := []string{"begin", "begin", "begin"}; !slices.Equal(p.stores[i].transitions(), want) {
				t.Errorf("process %d: transitions %v, want %v", i, p.stores[i].transitions(), want)
			}
		}
		p.checkIdle(t)
	})
}

// Duplicates that arrive while a request is in flight send none.
func TestSimultaneousDuplicatesShareOneRequest(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]time.Duration{"nowait callers": 0, "waiters": WaitForever} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p, c := newProcesses(1), &callers{}
				end(t, hold(t, p.engines[0], attempt("f", 0)), Commit)
				p.stores[0].before.set(func(string, storetest.AnyRequest) error { time.Sleep(time.Millisecond); return nil })
				c.join(t, p.engines[0], 20, attempt("f", wait))
				time.Sleep(time.Second)
				c.check(t, 0, 20, "p0:1")
				if n := p.stores[0].count("begin"); n != 2 {
					t.Errorf("%d begins, want 2", n)
				}
				p.checkIdle(t)
			})
		})
	}
}

func TestOneWaiterRunsAfterAbort(t *testing.T) {
	t.Parallel()
	for name, others := range map[string]int{"here": 0, "elsewhere": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p, c := newProcesses(2), &callers{ending: Commit}
				h := hold(t, p.engines[0], attempt("f", 0))
				c.join(t, p.engines[others], 20, attempt("f", WaitForever))
				end(t, h, Abort)
				time.Sleep(10 * time.Second)
				c.check(t, 1, 19, "")
				if n := len(p.server.record("k").answer); n == 0 {
					t.Error("no answer")
				}
				p.checkIdle(t)
			})
		})
	}
}

// No token serves two attempts, even of many in a row.
func TestEachAttemptHasItsOwnToken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, c := newProcesses(2), &callers{ending: Abort}
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

//faults:row 49
func TestMismatchIsCheckedFirst(t *testing.T) {
	t.Parallel()
	other := func(wait time.Duration) Request { return attempt("other", wait) }
	for _, wait := range []time.Duration{0, WaitForever} {
		for name, end := range map[string]Ending{"while it runs": -1, "after it": Commit, "after a sealed one": Seal} {
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
						_, _ = h.End(t.Context(), Commit, nil)
					}
					synctest.Wait()
					p.checkIdle(t)
				})
			})
		}
	}
}

// Of callers that arrive together one runs. Those with another request are refused.
func TestMismatchAmongSimultaneousCallers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, c := newProcesses(1), &callers{ending: Commit}
		p.stores[0].before.set(func(string, storetest.AnyRequest) error { time.Sleep(time.Millisecond); return nil })
		c.join(t, p.engines[0], 5, attempt("f", WaitForever))
		c.join(t, p.engines[0], 5, attempt("other", WaitForever))
		time.Sleep(10 * time.Second)
		c.check(t, 1, 4, "p0:1")
		if c.reasons[Mismatch] != 5 {
			t.Errorf("others %v", c.reasons)
		}
		p.checkIdle(t)
	})
}

// As soon as an attempt runs, callers with another request are refused.
func TestMismatchIsKnownFromTheGrant(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, c := newProcesses(1), &callers{ending: Commit}
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

//faults:row 45
func TestRecordOfDeadAttempt(t *testing.T) {
	t.Parallel()
	dead := fakeRecord{state: 'R', token: "dead:1", fingerprint: []byte("f"), number: 3}
	t.Run("rejected", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			p := newProcesses(1)
			p.server.setRecord("k", dead)
			if refusal := refused(t, p.engines[0], attempt("f", WaitForever)); refusal.Reason != Interrupted {
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
			end(t, h, Commit)
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
			end(t, h, Commit)
			p.checkIdle(t)
		})
	})
	t.Run("under waiters of both kinds", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			p, c, again := newProcesses(1), &callers{}, &callers{ending: Commit}
			p.server.set("k", "dead:1", 3*time.Second)
			p.server.setRecord("k", dead)
			rerun := attempt("f", WaitForever)
			rerun.Attempt.Rerun = true
			c.join(t, p.engines[0], 3, attempt("f", WaitForever))
			again.join(t, p.engines[0], 3, rerun)
			time.Sleep(20 * time.Second)
			again.check(t, 1, 2, "")
			if c.reasons[Interrupted] != 3 {
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
		end(t, h, Commit)
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
		if _, err := p.engines[0].Acquire(ctx, attempt("f", 0)); reasonOf(t, err) == Interrupted {
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
		end(t, h, Commit)
		p.checkIdle(t)
	})
}

// Mere locks of a key wait for attempts, and attempts wait for locks.
func TestAttemptsAndLocksExcludeEachOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, c := newProcesses(2), &callers{ending: Commit}
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
