package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

func canceledContext() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// A context that is made late has the end of the hold.
func TestContextMadeLateHasEndOfHold(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		end  func(*testing.T, *fakeStore, *Hold)
		want error
	}{
		"held":     {func(*testing.T, *fakeStore, *Hold) {}, nil},
		"released": {func(t *testing.T, _ *fakeStore, h *Hold) { t.Helper(); release(t, h) }, context.Canceled},
		"lost": {func(_ *testing.T, s *fakeStore, _ *Hold) {
			s.before.set(func(string, storetest.AnyRequest) error { return errDown })
			time.Sleep(validity)
			synctest.Wait()
		}, lossError{Expired}},
	} {
		for _, early := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					e, s, _ := newEngine()
					h := hold(t, e, request(0))
					if early {
						h.Context()
					}
					test.end(t, s, h)
					if got := context.Cause(h.Context()); got != test.want { //nolint:errorlint // the very cause
						t.Errorf("early %v: the cause is %v, want %v", early, got, test.want)
					}
					s.before.set(nil)
					_, _ = h.Release(context.Background())
				})
			})
		}
	}
}

// The context of a hold is derived from that of the caller. If the context is made after
// the release, it has the end of the hold, even if the caller's context has ended.
func TestContextHasParent(t *testing.T) {
	t.Parallel()
	e, _, _ := newEngine()
	ctx, cancel := context.WithCancelCause(t.Context())
	held := func() *Hold {
		h, err := e.Acquire(ctx, request(0))
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	late := held()
	release(t, late)
	h := held()
	made := h.Context()
	cancel(errDown)
	if got := context.Cause(made); got != errDown { //nolint:errorlint // the very cause
		t.Errorf("the cause is %v, want that of the parent", got)
	}
	if got := context.Cause(late.Context()); got != context.Canceled { //nolint:errorlint // the very cause
		t.Errorf("the cause after the release is %v", got)
	}
	release(t, h)
}

// holdContext is a caller's context with a Done that uses another hold.
type holdContext struct {
	context.Context
	hold *Hold
}

func (v holdContext) Done() <-chan struct{} { return v.hold.Context().Done() }

func (v holdContext) Err() error { return v.hold.Context().Err() }

// No code of a caller runs under a shard's mutex.
func TestCallerContextIsNotUsedUnderMutex(t *testing.T) {
	t.Parallel()
	e, _, _ := newEngine()
	outer := hold(t, e, request(0))
	r := request(0)
	for e.shardOf(r.Key) != e.shardOf("k") || r.Key == "k" {
		r.Key += "k"
	}
	inner, err := e.Acquire(holdContext{context.Background(), outer}, r)
	if err != nil {
		t.Fatal(err)
	}
	inner.Context() // deadlocks if called under the mutex
	release(t, inner)
	release(t, outer)
}
