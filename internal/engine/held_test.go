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

// A lease that is not released is reported again and again, with a growing interval.
func TestHeldLongIsRepeated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, _, events := newEngine()
		r := request(0)
		r.TTL, r.Caller = 3*time.Second, "here"
		h := hold(t, e, r)
		time.Sleep(2*time.Minute + time.Second)
		release(t, h)
		var ages []time.Duration
		for i, event := range events.of(HeldLong) {
			ages = append(ages, event.Held)
			if event.Repeated != (i > 0) || event.Caller != "here" || event.Key != "k" {
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
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
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
			closing[0].Caller != "by first" || closing[0].Context == nil || *closing[0].Context != ctx {
			t.Errorf("closing: %+v", closing)
		}
		if err := e.Close(t.Context()); err != nil || len(events.of(Closing)) != 1 {
			t.Errorf("second close: %v, %+v", err, events.of(Closing))
		}
	})
}

func TestCloseWithoutHoldersReportsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
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
