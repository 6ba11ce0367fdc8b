package core_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
)

// A service is a Sealer that a test can disturb.
type service struct {
	*core.AESSealer
	disturbed atomic.Pointer[disturbance]
}

// A disturbance is a function that the methods of a service call first, an id of a key in place of that
// of Seal, and whether Seal returns no bytes.
type disturbance struct {
	first   func(ctx context.Context) error
	keyID   string
	nothing bool
}

// disturb lets the methods call a function first; nil is none.
func (s *service) disturb(first func(ctx context.Context) error) {
	s.disturbed.Store(&disturbance{first: first})
}

// call calls the function.
func (s *service) call(ctx context.Context) error {
	if d := s.disturbed.Load(); d != nil && d.first != nil {
		return d.first(ctx)
	}
	return nil
}

func (s *service) Seal(ctx context.Context, answer, binding []byte) (string, []byte, error) {
	if err := s.call(ctx); err != nil {
		return "", nil, err
	}
	id, sealed, err := s.AESSealer.Seal(ctx, answer, binding)
	if d := s.disturbed.Load(); d != nil && d.keyID != "" {
		id = d.keyID
	}
	if d := s.disturbed.Load(); d != nil && d.nothing {
		sealed = nil
	}
	return id, sealed, err
}

func (s *service) Open(ctx context.Context, keyID string, sealed, binding []byte) ([]byte, error) {
	if err := s.call(ctx); err != nil {
		return nil, err
	}
	return s.AESSealer.Open(ctx, keyID, sealed, binding)
}

// withService runs a test in a bubble with a Locker that has such a Sealer.
func withService(t *testing.T, test func(t *testing.T, locks *locktest.Locks, s *service), opts ...core.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &service{AESSealer: sealerOf(t, "now")}
		test(t, locktest.New(t, append(opts, core.WithSealer(s))...), s)
	})
}

// A Sealer that fails, or takes longer than it may, is a commit that has failed. The commit goes on, and
// its result is stored once the Sealer is back.
func TestSealerFails(t *testing.T) {
	t.Parallel()
	const text = "the answer"
	for name, test := range map[string]struct {
		disturbance
		took time.Duration
		want string
	}{
		"an error":           {disturbance{first: func(context.Context) error { return errors.New("no key") }}, 0, "no key"},
		"one of reqlock":     {disturbance{first: func(context.Context) error { return fmt.Errorf("no key: %w", core.ErrUnreplayable) }}, 0, "no key"},
		"no bytes":           {disturbance{nothing: true}, 0, "returned nothing"},
		"a panic":            {disturbance{first: func(context.Context) error { panic(text) }}, 0, "panicked"},
		"a Goexit":           {disturbance{first: func(context.Context) error { runtime.Goexit(); return nil }}, 0, "ended its goroutine"},
		"a long id":          {disturbance{keyID: strings.Repeat("k", 256)}, 0, "1 to 255 bytes"},
		"too slow":           {disturbance{first: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}, time.Second, "deadline"},
		"too slow, and deaf": {disturbance{first: func(context.Context) error { time.Sleep(3 * time.Second); return nil }}, time.Second, "within 1s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withService(t, func(t *testing.T, locks *locktest.Locks, s *service) {
				a := begin(t, locks.Locker, "k")
				s.disturbed.Store(&test.disturbance)
				begun := time.Now()
				err := a.Commit(t.Context(), []byte(text))
				wantError(t, err, core.ErrUnavailable)
				if took := time.Since(begun); took != test.took || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), text) {
					t.Errorf("after %v: %v", took, err)
				}
				if refusal, _ := core.RefusalOf(err); refusal.Code != "unavailable" || refusal.RetryAfter == 0 || errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("refused with %+v", refusal)
				}
				if again := a.Abort(t.Context()); !errors.Is(again, core.ErrUnavailable) {
					t.Errorf("a later Abort returns %v", again)
				}
				wantReplay(t, locks.Locker, "k", text)
				time.Sleep(5 * time.Second) // for the calls that are under way
				s.disturb(nil)
				time.Sleep(5 * time.Second)
				if open := locks.OpenCommits().Count; open != 0 {
					t.Errorf("%d commits are open", open)
				}
				wantReplay(t, locks.Locker, "k", text)
			}, core.WithTTL(time.Minute))
		})
	}
}

// The events of a sealed answer have the reference of the first request, also if the answer does not open.
func TestSealedReplayHasFirst(t *testing.T) {
	t.Parallel()
	rdb := newEmbedded(t)
	one, events := observed(t, rdb, core.WithSealer(sealerOf(t, "now")), core.WithReference(referenceOf))
	a, err := one.Begin(withReference(t.Context(), "first"), "k", []byte("f"))
	noError(t, err)
	noError(t, a.Commit(t.Context(), []byte("answer")))
	wantReplay(t, one, "k", "answer")
	_, err = one.With(core.WithSealer(sealerOf(t, "other")), core.WithFirstShown(true)).Begin(t.Context(), "k", []byte("f"))
	wantError(t, err, core.ErrUnreplayable)
	if refusal, _ := core.RefusalOf(err); refusal.First != "first" {
		t.Errorf("refused with %+v", refusal)
	}
	for _, kind := range []core.EventKind{core.Replayed, core.Refused} {
		if got := events.of(kind); len(got) != 1 || got[0].First != "first" {
			t.Errorf("%v: %+v", kind, got)
		}
	}
}

// While the answer is sealed, the lease is renewed, and a second ending waits for the result of the first.
func TestAnswerIsSealedUnderTheLease(t *testing.T) {
	t.Parallel()
	withService(t, func(t *testing.T, locks *locktest.Locks, s *service) {
		a := begin(t, locks.Locker, "k")
		s.disturb(func(context.Context) error {
			time.Sleep(25 * time.Second)
			return a.Lease().Context().Err()
		})
		committed := start(func() error { return a.Commit(endedContext(), []byte("answer")) })
		synctest.Wait()
		if err := a.Abort(endedContext()); !errors.Is(err, context.Canceled) {
			t.Errorf("an Abort that does not wait returns %v", err)
		}
		noError(t, a.Abort(t.Context()))
		if err := <-committed; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("Commit returns %v", err)
		}
		s.disturb(nil)
		wantReplay(t, locks.Locker, "k", "answer")
	}, core.WithTTL(10*time.Second), core.WithSealTimeout(30*time.Second))
}

// What a copy gets if its answer does not open.
func TestRefusalOfAnAnswerThatDoesNotOpen(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		first func(ctx context.Context) error
		want  error
		code  string
		retry bool
	}{
		"no key any more": {func(context.Context) error { return fmt.Errorf("%w: deleted", core.ErrUnreplayable) }, core.ErrUnreplayable, "completed_unreplayable", false},
		"a timeout":       {func(context.Context) error { return context.DeadlineExceeded }, core.ErrUnavailable, "unavailable", true},
		"one of reqlock":  {func(context.Context) error { return &core.Error{Kind: core.ErrBusy} }, core.ErrUnavailable, "unavailable", true},
		"the end of one":  {func(context.Context) error { return core.ErrClosed }, core.ErrUnavailable, "unavailable", true},
		"too slow":        {func(context.Context) error { time.Sleep(time.Minute); return nil }, core.ErrUnavailable, "unavailable", true},
		"a panic":         {func(context.Context) error { panic("answer") }, core.ErrUnavailable, "unavailable", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withService(t, func(t *testing.T, locks *locktest.Locks, s *service) {
				noError(t, begin(t, locks.Locker, "k").Commit(t.Context(), []byte("answer")))
				s.disturb(test.first)
				_, err := locks.Begin(t.Context(), "k", []byte("f"))
				wantError(t, err, test.want)
				if got, _ := core.RefusalOf(err); got.Code != test.code || (got.RetryAfter > 0) != test.retry || !strings.Contains(err.Error(), `"now"`) {
					t.Errorf("%v is %+v", err, got)
				}
				s.disturb(nil)
				wantReplay(t, locks.Locker, "k", "answer")
				time.Sleep(time.Minute) // for the calls that are under way
			})
		})
	}
}

// The client leaves while the answer of its copy is opened.
func TestOpeningEndsWithTheCaller(t *testing.T) {
	t.Parallel()
	withService(t, func(t *testing.T, locks *locktest.Locks, s *service) {
		noError(t, begin(t, locks.Locker, "k").Commit(t.Context(), []byte("answer")))
		s.disturb(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := locks.Begin(ctx, "k", []byte("f"))
		if got, _ := core.RefusalOf(err); got.Code != "deadline" {
			t.Errorf("%v is %+v", err, got)
		}
	})
}
