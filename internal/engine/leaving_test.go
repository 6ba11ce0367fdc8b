package engine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

func TestLeavingCallerIsRemoved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, events := newEngine()
		first := hold(t, e, request(0))
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error)
		go func() {
			_, err := e.Acquire(ctx, request(WaitForever))
			left <- err
		}()
		synctest.Wait()
		var served []string
		waiting(t, e, request(WaitForever), func(*Hold) { served = append(served, "second") })
		begun := time.Now()
		cancel()
		err := <-left
		if refusal := err.(*Refusal); refusal.Reason != TimedOut || refusal.Ended != context.Canceled || time.Since(begun) != 0 { //nolint:errorlint,forcetypeassert // exact by contract
			t.Errorf("leaving caller: %+v after %v", refusal, time.Since(begun))
		}
		release(t, first)
		synctest.Wait()
		if len(served) != 1 || s.value("k") != "" || len(events.of(Acquired)) != 2 {
			t.Errorf("served %v, key %q", served, s.value("k"))
		}
	})
}

func TestWaitEndsOnTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		s.set("k", "foreign", time.Hour)
		begun := time.Now()
		_, err := e.Acquire(t.Context(), request(2*time.Second))
		if reasonOf(t, err) != TimedOut || time.Since(begun) != 2*time.Second {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		synctest.Wait()
		if e.queueCount() != 0 || s.value("k") != "foreign" {
			t.Errorf("%d queues, key %q", e.queueCount(), s.value("k"))
		}
	})
}

// The time of a slow first request belongs to the wait.
func TestWaitEndsOnTimeAfterSlowRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		s.set("k", "foreign", time.Hour)
		s.inline = true
		s.before.set(func(string, storetest.AnyRequest) error { time.Sleep(bound); return nil })
		begun := time.Now()
		_, err := e.Acquire(t.Context(), request(2*time.Second))
		if reasonOf(t, err) != TimedOut || time.Since(begun) != 2*time.Second {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		if err := e.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// The refusal of a caller whose context has ended has the error and the cause of the
// context.
func TestRefusalHasCauseOfContext(t *testing.T) {
	t.Parallel()
	e, s, _ := newEngine()
	s.set("k", "foreign", time.Hour)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errDown)
	_, err := e.Acquire(ctx, request(WaitForever))
	var refusal *Refusal
	if !errors.As(err, &refusal) || refusal.Reason != TimedOut || refusal.Ended != context.Canceled || refusal.Cause != errDown { //nolint:errorlint // the very errors
		t.Errorf("%+v", refusal)
	}
}

func TestGrantAfterCallerLeftIsReleased(t *testing.T) {
	t.Parallel()
	for _, transition := range []string{"take", "enqueue"} {
		t.Run(transition, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e, s, events := newEngine()
				if transition == "enqueue" {
					s.set("k", "foreign", time.Hour) // the take is refused, an enqueue wins
				}
				s.after.set(func(name string, _ storetest.AnyRequest) error {
					if name == "take" && transition == "enqueue" {
						s.set("k", "", 0)
					}
					if name == transition {
						time.Sleep(100 * time.Millisecond) // the reply is slow
					}
					return nil
				})
				ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
				defer cancel()
				begun := time.Now()
				_, err := e.Acquire(ctx, request(WaitForever))
				if reasonOf(t, err) == 0 || time.Since(begun) != 50*time.Millisecond {
					t.Errorf("%v after %v", err, time.Since(begun))
				}
				if s.value("k") == "" {
					t.Fatal("the command did not win: the test shows nothing")
				}
				time.Sleep(time.Second)
				if s.value("k") != "" || e.queueCount() != 0 || len(events.of(Acquired)) != 0 {
					t.Errorf("key %q, %d queues", s.value("k"), e.queueCount())
				}
			})
		})
	}
}

func TestGrantToLeavingCallerIsPassedOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, events := newEngine()
		ctx, cancel := context.WithCancel(t.Context())
		r := request(WaitForever)
		w := e.newWaiter(ctx, &r)
		if refusal := e.enter(ctx, w); refusal != nil {
			t.Fatal(refusal)
		}
		synctest.Wait() // granted, but the caller has not seen it
		served := false
		waiting(t, e, request(WaitForever), func(*Hold) { served = true })
		cancel()
		if refusal := e.await(ctx, w, time.Now()); refusal == nil || !errors.Is(refusal.Ended, context.Canceled) {
			t.Errorf("leaving caller got %v", refusal)
		}
		synctest.Wait()
		if !served || s.count("take") != 1 || s.value("k") != "" {
			t.Errorf("served %v, %d takes, key %q", served, s.count("take"), s.value("k"))
		}
		if got := len(events.of(Released)); got != 1 {
			t.Errorf("%d released events, want the one of the holder", got)
		}
	})
}

func TestRequestOutlivesFirstWaiter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		s.before.set(func(name string, _ storetest.AnyRequest) error {
			if name == "take" {
				time.Sleep(100 * time.Millisecond)
			}
			return nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		go func() { _, _ = e.Acquire(ctx, request(WaitForever)) }()
		synctest.Wait()
		var token string
		waiting(t, e, request(WaitForever), func(h *Hold) { token = h.Token() })
		time.Sleep(time.Second)
		synctest.Wait()
		if token != "me:1" || s.count("take") != 1 {
			t.Errorf("token %q after %d takes", token, s.count("take"))
		}
	})
}
