package engine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

func TestFaultIsNotContention(t *testing.T) {
	t.Parallel()
	denied := &store.Fault{Err: errors.New("denied")}
	tests := []struct {
		name  string
		fault *store.Fault
		wait  time.Duration
		after time.Duration // time of the refusal
	}{
		{"temporary, nowait caller", errDown, 0, 0},
		{"temporary, waiter retries to the end of its wait", errDown, time.Second, time.Second},
		{"permanent, nowait caller", denied, 0, 0},
		{"permanent, waiter", denied, time.Second, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e, s, _ := newEngine()
				s.before.set(func(string, storetest.AnyRequest) error { return test.fault })
				begun := time.Now()
				_, err := e.Acquire(t.Context(), request(test.wait))
				if reasonOf(t, err) != Unavailable || !errors.Is(err.(*Refusal).Fault, test.fault) || time.Since(begun) != test.after { //nolint:errorlint,forcetypeassert // checked by reasonOf
					t.Errorf("%v after %v", err, time.Since(begun))
				}
				synctest.Wait()
				if e.queueCount() != 0 {
					t.Error("the queue is left")
				}
			})
		})
	}
}

func TestEventsComeInOrder(t *testing.T) {
	t.Parallel()
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			e, s, events := newEngine()
			s.set("k", "foreign", time.Hour)
			// The reply comes at the moment when the wait ends.
			s.before.set(func(string, storetest.AnyRequest) error { time.Sleep(time.Millisecond); return nil })
			if _, err := e.Acquire(t.Context(), request(time.Millisecond)); err == nil {
				t.Fatal("acquired")
			}
			time.Sleep(time.Second) // all commands in flight end
			all := events.all()
			if last := all[len(all)-1]; last.Kind != Refused || last.Queued != (all[0].Kind == Waiting) || len(all) > 2 {
				t.Errorf("events %+v", all)
			}
		})
	}
}

func TestWaiterOutlastsFault(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		back := time.Now().Add(3 * time.Second)
		s.before.set(func(string, storetest.AnyRequest) error {
			if time.Now().Before(back) {
				return errDown
			}
			return nil
		})
		h := hold(t, e, request(10*time.Second))
		if late := time.Since(back); late < 0 || late > maxPause {
			t.Errorf("served %v after the fault", late)
		}
		release(t, h)
	})
}

func TestFailedReleaseIsResent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, events := newEngine()
		h := hold(t, e, request(0))
		back := time.Now().Add(2 * time.Second)
		s.before.set(func(string, storetest.AnyRequest) error {
			if time.Now().Before(back) {
				return errDown
			}
			return nil
		})
		if loss, err := h.Release(t.Context()); loss != NotLost || !errors.Is(err, errDown) {
			t.Errorf("release: %v, %v", loss, err)
		}
		if released := events.of(Released); len(released) != 1 || !errors.Is(released[0].Err, errDown) {
			t.Errorf("events %v", released)
		}
		time.Sleep(3 * time.Second)
		if s.value("k") != "" {
			t.Error("the key is left to its TTL")
		}
	})
}

// While a token is being released, the reply to a resent take may come. The take may
// have locked the key after the release, or not.
func TestHintDuringReleaseCausesSecondRelease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, events := newEngine()
		h := hold(t, e, request(0))
		s.before.set(func(transition string, _ storetest.AnyRequest) error {
			if transition == "release" && s.begunCount("release") == 1 {
				time.Sleep(time.Second)
			}
			return nil
		})
		go func() {
			time.Sleep(time.Millisecond)
			s.hint("k", h.Token())
		}()
		release(t, h)
		synctest.Wait()
		if len(events.of(Lost)) != 0 || s.count("release") != 2 {
			t.Errorf("%d losses, %d releases; want 0 and 2", len(events.of(Lost)), s.count("release"))
		}
	})
}

func TestNowaitCallerDuringHangingRelease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		h := hold(t, e, request(0))
		s.before.set(func(string, storetest.AnyRequest) error { time.Sleep(bound); return errDown })
		go func() { _, _ = h.Release(t.Context()) }()
		synctest.Wait()
		short := request(bound / 10)
		if _, err := e.Acquire(t.Context(), short); reasonOf(t, err) != Unavailable {
			t.Errorf("a new caller without contention: %v", err)
		}
		begun := time.Now()
		if _, err := e.Acquire(t.Context(), request(0)); reasonOf(t, err) != Unavailable {
			t.Errorf("got %v", err)
		}
		if took := time.Since(begun); took > bound+bound/4 {
			t.Errorf("a nowait caller took %v, its bound is %v", took, bound)
		}
		s.before.set(nil)
		time.Sleep(time.Minute) // everything that was left behind ends
		if s.value("k") != "" || e.queueCount() != 0 {
			t.Errorf("key %q, %d queues", s.value("k"), e.queueCount())
		}
	})
}

// A nowait caller that comes while the queue pauses after a fault has its own request sent
// at once.
func TestNowaitCallerEndsPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		s.before.set(func(string, storetest.AnyRequest) error { return errDown })
		go func() { _, _ = e.Acquire(t.Context(), request(2*time.Second)) }()
		time.Sleep(time.Second)
		synctest.Wait()
		begun := time.Now()
		_, err := e.Acquire(t.Context(), request(0))
		if reasonOf(t, err) != Unavailable || time.Since(begun) > 0 || err.Error() != errDown.Error() {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		time.Sleep(2 * time.Second)
	})
}

// A nowait caller waits for a release no longer than for a command. The key may be free
// then, so this is not contention.
func TestNowaitCallerDuringSlowRelease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		h := hold(t, e, request(0))
		s.before.set(func(string, storetest.AnyRequest) error { time.Sleep(3 * bound); return nil })
		h.BeginRelease()
		begun := time.Now()
		if _, err := e.Acquire(t.Context(), request(0)); reasonOf(t, err) != Unavailable || time.Since(begun) != bound {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		if err := e.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestLostLeaseIsNotReleasedWhileHolderRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		r := request(0)
		r.Renew = false
		h := hold(t, e, r)
		<-h.Context().Done() // lost, but not expired on the server, and its code still runs
		s.set("k", h.Token(), time.Minute)
		if _, err := e.Acquire(t.Context(), request(0)); reasonOf(t, err) != Busy {
			t.Errorf("got %v", err)
		}
		s.hint("k", h.Token())
		synctest.Wait()
		if s.value("k") != h.Token() {
			t.Fatal("deleted under running code")
		}
		_, _ = h.Release(t.Context())
		synctest.Wait()
		if s.value("k") != "" || e.queueCount() != 0 {
			t.Errorf("key %q, %d queues", s.value("k"), e.queueCount())
		}
	})
}

func TestReleaseReturnsWhenContextEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		h := hold(t, e, request(0))
		s.before.set(func(string, storetest.AnyRequest) error { time.Sleep(time.Second); return nil })
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if _, err := h.Release(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		release(t, h) // the second call waits for the result of the first
		if s.value("k") != "" || s.count("release") != 1 {
			t.Errorf("key %q after %d releases", s.value("k"), s.count("release"))
		}
	})
}

func TestReleaseIsSentAfterContextEnded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		ctx, cancel := context.WithCancel(t.Context())
		h, err := e.Acquire(ctx, request(0))
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		_, _ = h.Release(ctx)
		synctest.Wait()
		if s.value("k") != "" {
			t.Error("the key is left to its TTL")
		}
	})
}
