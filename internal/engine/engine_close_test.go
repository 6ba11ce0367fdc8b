package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestCloseRefusesWaitersAndWaitsForHolders(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, s, _ := newEngine()
		h := hold(t, e, request(0))
		waiter := acquiring(t, e, request(WaitForever))
		s.set("other", "foreign", time.Hour)
		poller := acquiring(t, e, Request{Key: "other", TTL: time.Second, MaxWaiters: 1000, Wait: WaitForever})
		closed := make(chan error)
		go func() { closed <- e.Close(t.Context()) }()
		for _, refused := range []<-chan error{waiter, poller} {
			if err := <-refused; reasonOf(t, err) != ClosedDown {
				t.Errorf("waiter: %v", err)
			}
		}
		refuses(t, e, request(0), ClosedDown)
		time.Sleep(time.Minute)
		if h.Context().Err() != nil || s.value("k") != h.Token() {
			t.Error("the holder may finish")
		}
		release(t, h)
		if err := <-closed; err != nil {
			t.Errorf("close: %v", err)
		}
		closes(t, e)
		if s.value("k") != "" || e.queueCount() != 0 {
			t.Errorf("key %q, %d queues", s.value("k"), e.queueCount())
		}
	})
}

func TestCloseGivesUpWithItsContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
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
		e.schedule.mu.Lock()
		if len(e.schedule.heap) != 0 || !e.schedule.at.IsZero() {
			t.Errorf("the schedule keeps %d leases, due at %v", len(e.schedule.heap), e.schedule.at)
		}
		e.schedule.mu.Unlock()
		closes(t, e) // a second close does not wait for a holder that lost its lease
		time.Sleep(request(0).TTL)
		if s.value("k") != "" {
			t.Error("renewed after the close")
		}
		releaseLost(t, h, Closed)
		synctest.Wait()
		if n := s.begunCount("release"); n != 0 || e.queueCount() != 0 { // the store is closed
			t.Errorf("%d releases sent, %d queues left", n, e.queueCount())
		}
	})
}

func TestCloseWaitsForReleaseOfLateGrant(t *testing.T) {
	bubble(t, func(t *testing.T) {
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
	bubble(t, func(t *testing.T) {
		e, s, _ := newEngine()
		h, other := hold(t, e, request(0)), hold(t, e, Request{Key: "other", TTL: time.Hour})
		s.before.set(fails(errDown))
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
	bubble(t, func(t *testing.T) {
		e, s, _ := newEngine()
		dead := deadToken(t, e)
		s.before.set(fails(errDown))
		e.discardAsync(keyToken{"k", dead}, attempt("f", 0).Attempt, time.Time{})
		time.Sleep(time.Second)
		begun := time.Now()
		closes(t, e)
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
		row(t, name, func(t *testing.T) {
			p := newProcesses(1)
			e := p.engines[0]
			h, plain := hold(t, e, attempt("f", 0)), hold(t, e, Request{Key: "plain", TTL: time.Second})
			ended := make(chan error)
			go func() {
				<-h.Context().Done()
				time.Sleep(test.ends)
				_, err := h.End(context.Background(), EndCommit, answerOf(h))
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
			closes(t, e)
		})
	}
}

// A lease that is not released is reported again and again, with a growing interval.
func TestHeldLongIsRepeated(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, _, events := newEngine()
		r := request(0)
		r.TTL, r.Caller = 3*time.Second, "here"
		h := hold(t, e, r)
		time.Sleep(2*time.Minute + time.Second)
		release(t, h)
		var ages []time.Duration
		for i, event := range events.of(HeldLong) {
			ages = append(ages, event.Held)
			if event.Repeated != (i > 0) || event.Origin != "here" || event.Key != "k" {
				t.Errorf("event %d: %+v", i, event)
			}
		}
		// Each is more than twice the age before, at the next renewal, one second later.
		want := []time.Duration{10 * time.Second, 21 * time.Second, 43 * time.Second, 87 * time.Second}
		if !slices.Equal(ages, want) {
			t.Fatalf("reported at the ages %v, want %v", ages, want)
		}
		h = hold(t, e, r)
		time.Sleep(11 * time.Second)
		release(t, h)
		if long := events.of(HeldLong); len(long) != len(want)+1 || long[len(want)].Repeated {
			t.Errorf("the next hold: %+v", long[len(want):])
		}
	})
}

// Close reports how many leases are held, and since when: in an event when it begins to wait,
// and in its error when its context ends.
func TestCloseReportsWhatItWaitsFor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, _, events := newEngine()
		for _, key := range []string{"first", "a", "z"} {
			r := request(0)
			r.Key, r.Caller = key, "by "+key
			hold(t, e, r)
			time.Sleep(time.Minute)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		since := time.Now().Add(-3 * time.Minute).UTC().Format(time.RFC3339)
		err := e.Close(ctx)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("close: %v", err)
		}
		for _, part := range []string{"not released: 3", "since " + since, "for 3m1s", "by first"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("close: %v, without %q", err, part)
			}
		}
		closing := events.of(Closing)
		if len(closing) != 1 || closing[0].Holds != 3 || closing[0].Key != "first" || closing[0].Held != 3*time.Minute ||
			closing[0].Origin != "by first" || closing[0].Context == nil || *closing[0].Context != ctx {
			t.Errorf("closing: %+v", closing)
		}
		if err := e.Close(t.Context()); err != nil || len(events.of(Closing)) != 1 {
			t.Errorf("second close: %v, %+v", err, events.of(Closing))
		}
	})
}

func TestCloseWithoutHoldersReportsNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, _, events := newEngine()
		release(t, hold(t, e, request(0)))
		if err := e.Close(t.Context()); err != nil || len(events.of(Closing)) != 0 {
			t.Errorf("%v, %+v", err, events.of(Closing))
		}
		e, _, _ = newEngine()
		done := make(chan struct{})
		e.Go(func() { <-done })
		err := e.Close(canceledContext())
		if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "no lease is held") {
			t.Errorf("close during a command: %v", err)
		}
		close(done)
	})
}
