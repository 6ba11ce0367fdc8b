package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// A context that is made late has the end of the hold.
func TestContextMadeLateHasEndOfHold(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		end  func(*testing.T, *fakeStore, *Hold)
		want error
	}{
		"held":     {func(*testing.T, *fakeStore, *Hold) {}, nil},
		"released": {func(t *testing.T, _ *fakeStore, h *Hold) { t.Helper(); release(t, h) }, context.Canceled},
		"lost":     {func(_ *testing.T, s *fakeStore, _ *Hold) { s.before.set(fails(errDown)); sleep(validity) }, lossError{Expired}},
	} {
		for _, early := range []bool{true, false} {
			row(t, name, func(t *testing.T) {
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

func TestMaxHoldCancelsContextAndStopsRenewal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, s, _ := newEngine()
		r := request(0)
		r.MaxHold = 30 * time.Second
		begun := time.Now()
		h := hold(t, e, r)
		<-h.Context().Done()
		if got := time.Since(begun); got != r.MaxHold || context.Cause(h.Context()) != (lossError{MaxHoldExceeded}) { //nolint:errorlint // the very cause
			t.Errorf("loss after %v: %v", got, context.Cause(h.Context()))
		}
		if s.value("k") != h.Token() {
			t.Error("the key was deleted under running code")
		}
		time.Sleep(r.TTL)
		if s.value("k") != "" {
			t.Error("renewed beyond the longest hold")
		}
		releaseLost(t, h, MaxHoldExceeded)
		synctest.Wait()
		checkNoQueue(t, e)
	})
}

// Only the first loss of a hold is reported, and the release returns that one.
func TestOnlyFirstLossIsReported(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		maxHold time.Duration
		later   func(e *Engine, s *fakeStore)
		want    Loss
	}{
		"MaxHold after the validity": {20 * time.Second, func(*Engine, *fakeStore) {}, Expired},
		"Close after MaxHold":        {time.Second, func(e *Engine, _ *fakeStore) { _ = e.Close(canceledContext()) }, MaxHoldExceeded},
		"a taken key after MaxHold":  {time.Second, func(_ *Engine, s *fakeStore) { s.set("k", "another", time.Second) }, MaxHoldExceeded},
	} {
		row(t, name, func(t *testing.T) {
			e, s, events := newEngine()
			r := request(0)
			r.Renew, r.MaxHold = false, test.maxHold
			h := hold(t, e, r)
			<-h.Context().Done()
			test.later(e, s)
			time.Sleep(test.maxHold)
			if loss, err := h.Release(t.Context()); loss != test.want || err != nil {
				t.Errorf("loss %v, error %v, want %v", loss, err, test.want)
			}
			synctest.Wait() // the queue of events is empty
			if lost := events.of(Lost); len(lost) != 1 || lost[0].Loss != test.want {
				t.Errorf("lost %+v, want %v once", lost, test.want)
			}
		})
	}
}

// A release stops the timer of MaxHold. A timer that fires at that moment reports nothing.
func TestReleaseEndsMaxHold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, _, events := newEngine()
		r := request(0)
		r.MaxHold = time.Hour
		h := hold(t, e, r)
		release(t, h)
		if h.maxHoldTimer.Stop() {
			t.Error("the timer was running after the release")
		}
		h.onMaxHold()
		synctest.Wait() // the queue of events is empty
		if lost := events.of(Lost); len(lost) != 0 {
			t.Errorf("lost %+v", lost)
		}
	})
}

// A lease ends with its validity also if its holder has exceeded MaxHold. Then the next
// waiter gets the key, even if that holder never releases it.
func TestLeaseEndsAfterMaxHold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, _, _ := newEngine()
		r := request(0)
		r.MaxHold = time.Second
		h := hold(t, e, r)
		begun, served := time.Now(), time.Time{}
		waiting(t, e, request(WaitForever), func(*Hold) { served = time.Now() })
		sleep(2 * r.TTL)
		if took := served.Sub(begun); took < validity || took > r.TTL+recheckInterval {
			t.Errorf("served after %v", took)
		}
		_, _ = h.Release(t.Context())
	})
}

func TestShortExtendKeepsCommandBound(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, s, _ := newEngine()
		h := hold(t, e, request(0))
		bounds := make(map[string]time.Duration)
		s.before.set(func(transition string, r storetest.AnyRequest) error {
			bounds[transition] = r.Bound
			return nil
		})
		extend(t, h, time.Millisecond)
		release(t, h)
		if bounds["renew"] != bound || bounds["release"] != bound {
			t.Errorf("the commands have the bounds %v, want %v", bounds, bound)
		}
	})
}

func TestExtensionIsNotInherited(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, s, _ := newEngine()
		h := hold(t, e, request(0))
		extend(t, h, time.Hour)
		waiting(t, e, request(WaitForever), func(next *Hold) {
			if next.Token() == h.Token() || time.Until(keyExpiry(s)) > request(0).TTL {
				t.Errorf("the next holder has token %q and %v to live", next.Token(), time.Until(keyExpiry(s)))
			}
		})
		release(t, h)
		synctest.Wait()
	})
}

func TestExtend(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, s, _ := newEngine()
		r := request(0)
		r.Renew = false
		h := hold(t, e, r)
		extend(t, h, time.Minute)
		time.Sleep(59 * time.Second)
		if h.Context().Err() != nil {
			t.Error("lost before the extended end")
		}
		release(t, h)
		if loss, _ := h.Extend(t.Context(), time.Minute); loss == NotLost {
			t.Error("extended after the release")
		}
		s.before.set(fails(errDown))
		refuses(t, e, request(0), Unavailable)
	})
}
