package engine

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// bubble runs a parallel test in a bubble of its own.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, f)
}

// row runs a parallel row of a table in a bubble of its own.
func row(t *testing.T, name string, f func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { bubble(t, f) })
}

// closes closes the engine, or fails the test.
func closes(t *testing.T, e *Engine) {
	t.Helper()
	if err := e.Close(t.Context()); err != nil {
		t.Errorf("close: %v", err)
	}
}

// passesUnlimited lets the lease of a hold pass without limit: as if no other process waits.
func passesUnlimited(h *Hold) {
	h.shard.mu.Lock()
	defer h.shard.mu.Unlock()
	h.lease.budget.unlimited = true
}

// waiting starts a waiter on its own goroutine and returns once the waiter is in the
// queue. run is called while the waiter holds the lease.
func waiting(t *testing.T, e *Engine, r Request, run func(*Hold)) {
	t.Helper()
	go func() {
		h, err := e.Acquire(t.Context(), r)
		if err != nil {
			t.Errorf("waiter: %v", err)
			return
		}
		run(h)
		release(t, h)
	}()
	synctest.Wait()
}

// acquiring acquires on another goroutine. The result is sent once.
func acquiring(t *testing.T, e *Engine, r Request) <-chan error {
	t.Helper()
	result := make(chan error, 1)
	go func() {
		h, err := e.Acquire(t.Context(), r)
		if err == nil {
			_, err = h.Release(t.Context())
		}
		result <- err
	}()
	synctest.Wait()
	return result
}

// processes are engines on one server.
type processes struct {
	server  *fakeServer
	engines []*Engine
	stores  []*fakeStore
	events  []*recorder
}

func newProcesses(n int) *processes {
	p := &processes{server: newFakeServer()}
	for i := range n {
		e, s, r := newEngineOn(p.server, fmt.Sprintf("p%d", i))
		p.engines, p.stores, p.events = append(p.engines, e), append(p.stores, s), append(p.events, r)
	}
	return p
}

// checkIdle fails the test if a key, a queue, a waiter or a subscription is left.
func (p *processes) checkIdle(t testing.TB) {
	t.Helper()
	synctest.Wait()
	if value, line := p.server.value("k"), p.server.queue("k"); value != "" || len(line) != 0 {
		t.Errorf("left: key %q, queue %v", value, line)
	}
	for i, e := range p.engines {
		if e.queueCount() != 0 || p.stores[i].listens() || e.limits.waiting.Load() != 0 {
			t.Errorf("process %d: %d queues, listens %v, %d wait", i, e.queueCount(), p.stores[i].listens(), e.limits.waiting.Load())
		}
		if open, discards := e.open.count.Load(), e.discards.count(); open != 0 || discards != 0 {
			t.Errorf("process %d: %d open commits, %d tokens are being discarded", i, open, discards)
		}
	}
}

// count returns how many tokens are being discarded, or are counted as such.
func (d *discardSet) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.entries) + len(d.aborts) + d.hinted
}

// count returns how many tokens are looked after.
func (s *laterSet) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.next)
}

// fillRenewals holds leases of which each renewal takes d, as many as are renewed at a time. They
// are due before later leases.
func fillRenewals(t *testing.T, e *Engine, s *fakeStore, d time.Duration) {
	t.Helper()
	s.before.set(func(transition string, r storetest.AnyRequest) error {
		if transition == "renew" && strings.HasPrefix(r.Key, "slow") {
			time.Sleep(d)
		}
		return nil
	})
	r := request(0)
	for i := range maxRenewals {
		r.Key = "slow" + strconv.Itoa(i)
		hold(t, e, r)
	}
	time.Sleep(50 * time.Millisecond)
}

// sleep sleeps until all goroutines of the bubble are blocked after that.
func sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// refuses fails the test unless the request is refused for this reason.
func refuses(t *testing.T, e *Engine, r Request, want Reason) {
	t.Helper()
	if _, err := e.Acquire(t.Context(), r); reasonOf(t, err) != want {
		t.Errorf("refused with %v, want %v", reasonOf(t, err), want)
	}
}

// releaseLost releases a hold, and fails the test unless the release reports this loss.
func releaseLost(t *testing.T, h *Hold, want Loss) {
	t.Helper()
	if loss, err := h.Release(context.Background()); loss != want || err != nil {
		t.Errorf("release: loss %v, error %v, want %v", loss, err, want)
	}
}

// checkNoQueue fails the test if the engine keeps a queue.
func checkNoQueue(t *testing.T, e *Engine) {
	t.Helper()
	if n := e.queueCount(); n != 0 {
		t.Errorf("%d queues are left", n)
	}
}

func canceledContext() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// longer returns a request with a TTL that makes the engine renew a lease of the other
// tests before it is passed on.
func longer(wait time.Duration) Request {
	r := request(wait)
	r.TTL = time.Minute
	return r
}

// leaving starts a caller that leaves when the result is called.
func leaving(t *testing.T, e *Engine, r Request) (leave func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	go func() { _, _ = e.Acquire(ctx, r) }()
	synctest.Wait()
	return cancel
}

// extend extends a hold, or fails the test.
func extend(t *testing.T, h *Hold, d time.Duration) {
	t.Helper()
	if loss, err := h.Extend(t.Context(), d); loss != NotLost || err != nil {
		t.Errorf("extend: loss %v, error %v", loss, err)
	}
}
