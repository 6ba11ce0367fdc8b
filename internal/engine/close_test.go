package engine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

func TestCloseRefusesWaitersAndWaitsForHolders(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		h := hold(t, e, request(0))
		waiter := make(chan error)
		go func() {
			_, err := e.Acquire(t.Context(), request(WaitForever))
			waiter <- err
		}()
		s.set("other", "foreign", time.Hour)
		poller := make(chan error)
		go func() {
			_, err := e.Acquire(t.Context(), Request{Key: "other", TTL: time.Second, MaxWaiters: 1000, Wait: WaitForever})
			poller <- err
		}()
		synctest.Wait()
		closed := make(chan error)
		go func() { closed <- e.Close(t.Context()) }()
		for _, refused := range []chan error{waiter, poller} {
			if err := <-refused; reasonOf(t, err) != ClosedDown {
				t.Errorf("waiter: %v", err)
			}
		}
		if _, err := e.Acquire(t.Context(), request(0)); reasonOf(t, err) != ClosedDown {
			t.Errorf("new caller: %v", err)
		}
		time.Sleep(time.Minute)
		if h.Context().Err() != nil || s.value("k") != h.Token() {
			t.Error("the holder may finish")
		}
		release(t, h)
		if err := <-closed; err != nil {
			t.Errorf("close: %v", err)
		}
		if err := e.Close(t.Context()); err != nil {
			t.Errorf("second close: %v", err)
		}
		if s.value("k") != "" || e.queueCount() != 0 {
			t.Errorf("key %q, %d queues", s.value("k"), e.queueCount())
		}
	})
}

func TestCloseGivesUpWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		h := hold(t, e, request(0))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		closed := false
		s.closed = func() { closed = true }
		if err := e.Close(ctx); !errors.Is(err, context.DeadlineExceeded) || !closed {
			t.Errorf("close: %v, and the store is closed: %v", err, closed)
		}
		<-h.Context().Done()
		if cause := context.Cause(h.Context()); cause != (lossError{Closed}) { //nolint:errorlint // the very cause
			t.Errorf("cause %v", cause)
		}
		if s.value("k") != h.Token() {
			t.Error("the key was deleted under running code")
		}
		if err := e.Close(t.Context()); err != nil {
			t.Errorf("a second close waits for a holder that lost its lease: %v", err)
		}
		time.Sleep(request(0).TTL)
		if s.value("k") != "" {
			t.Error("renewed after the close")
		}
		if loss, err := h.Release(t.Context()); loss != Closed || err != nil {
			t.Errorf("release: %v, %v", loss, err)
		}
		if e.queueCount() != 0 {
			t.Error("the queue is left")
		}
	})
}

func TestLossIsReportedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, _, events := newEngine()
		r := request(0)
		r.MaxHold = time.Second
		h := hold(t, e, r)
		time.Sleep(2 * time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_ = e.Close(ctx)
		if loss, _ := h.Release(t.Context()); loss != MaxHoldExceeded || len(events.of(Lost)) != 1 {
			t.Errorf("loss %v after %v", loss, events.of(Lost))
		}
	})
}

func TestCloseWaitsForReleaseOfLateGrant(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		dead := deadToken(t, e)
		s.closed = func() { // a command that was left behind has locked the key
			s.set("k", dead, time.Hour)
			s.lateGrant("k", dead)
		}
		if err := e.Close(t.Context()); err != nil || s.value("k") != "" {
			t.Errorf("closed with %v, and the key holds %q", err, s.value("k"))
		}
	})
}

func TestCloseEndsResendsOfRelease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		h, other := hold(t, e, request(0)), hold(t, e, Request{Key: "other", TTL: time.Hour})
		s.before.set(func(string, storetest.AnyRequest) error { return errDown })
		_, _ = h.Release(t.Context())
		closed := make(chan error)
		go func() { closed <- e.Close(t.Context()) }()
		synctest.Wait()
		releases := s.begunCount("release")
		_, _ = other.Release(t.Context()) // also after Close has begun
		begun := time.Now()
		if err := <-closed; err != nil || time.Since(begun) > time.Second {
			t.Errorf("close: %v after %v", err, time.Since(begun))
		}
		if more := s.begunCount("release") - releases; more > 4 || more < 2 {
			t.Errorf("released %d times, then %d", releases, more)
		}
	})
}

// Close does not wait longer for the abort of an attempt than for a commit.
func TestCloseEndsResendsOfAbort(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		dead := deadToken(t, e)
		s.before.set(func(string, storetest.AnyRequest) error { return errDown })
		e.discardAsync(keyToken{"k", dead}, attempt("f", 0).Attempt, time.Time{})
		time.Sleep(time.Second)
		begun := time.Now()
		if err := e.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); took < commitTimeout || took > commitTimeout+maxPause {
			t.Errorf("closed after %v", took)
		}
	})
}

// A Close that gives up waits a second for the ends of the attempts that it cuts off, so that the
// program does not close the client before them.
func TestCloseAwaitsAttemptsThatItCutsOff(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		ends       time.Duration // after the cut-off
		takes      time.Duration
		wantRecord rune
	}{
		"in time":  {300 * time.Millisecond, 300 * time.Millisecond, 'D'},
		"too late": {time.Minute, cutOffTime, 'R'},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newProcesses(1)
				e := p.engines[0]
				h, plain := hold(t, e, attempt("f", 0)), hold(t, e, Request{Key: "plain", TTL: time.Second})
				ended := make(chan error)
				go func() {
					<-h.Context().Done()
					time.Sleep(test.ends)
					_, err := h.End(context.Background(), Commit, answerOf(h))
					ended <- err
				}()
				begun := time.Now()
				if err := e.Close(canceledContext()); err == nil {
					t.Error("closed under a holder")
				}
				synctest.Wait()
				if took := time.Since(begun); took != test.takes {
					t.Errorf("took %v, want %v", took, test.takes)
				}
				if state := p.server.record("k").state; state != test.wantRecord {
					t.Errorf("the record is %c, want %c", state, test.wantRecord)
				}
				if err := <-ended; err != nil && test.wantRecord == 'D' {
					t.Error(err)
				}
				_, _ = plain.Release(context.Background())
				if err := e.Close(t.Context()); err != nil {
					t.Errorf("second close: %v", err)
				}
			})
		})
	}
}
