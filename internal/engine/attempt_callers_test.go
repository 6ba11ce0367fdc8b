package engine

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

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

func TestWaitingDuplicatesShareOneAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, c := newProcesses(3), &callers{}
		h := hold(t, p.engines[0], attempt("f", 0))
		for _, e := range p.engines {
			c.join(t, e, 30, attempt("f", WaitForever))
		}
		end(t, h, EndCommit)
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
				end(t, hold(t, p.engines[0], attempt("f", 0)), EndCommit)
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
				p, c := newProcesses(2), &callers{ending: EndCommit}
				h := hold(t, p.engines[0], attempt("f", 0))
				c.join(t, p.engines[others], 20, attempt("f", WaitForever))
				end(t, h, EndAbort)
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

// Of callers that arrive together one runs. Those with another request are refused.
func TestMismatchAmongSimultaneousCallers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, c := newProcesses(1), &callers{ending: EndCommit}
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
