package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestMaxHoldCancelsContextAndStopsRenewal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
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
		if loss, err := h.Release(t.Context()); loss != MaxHoldExceeded || err != nil {
			t.Errorf("release: %v, %v", loss, err)
		}
		synctest.Wait()
		if e.queueCount() != 0 {
			t.Error("the queue is left")
		}
	})
}

// MaxHold that ends after the loss of the lease is not reported.
func TestMaxHoldAfterLossIsNotReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, _, events := newEngine()
		r := request(0)
		r.Renew, r.MaxHold = false, 20*time.Second
		h := hold(t, e, r)
		time.Sleep(time.Minute)
		if loss, err := h.Release(t.Context()); loss != Expired || err != nil {
			t.Errorf("release: %v, %v", loss, err)
		}
		if lost := events.of(Lost); len(lost) != 1 || lost[0].Loss != Expired {
			t.Errorf("lost %+v", lost)
		}
	})
}

// The timer of MaxHold may fire while the hold is released.
func TestMaxHoldAfterReleaseIsNotReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, _, events := newEngine()
		r := request(0)
		r.MaxHold = time.Minute
		h := hold(t, e, r)
		release(t, h)
		h.onMaxHold()
		if lost := events.of(Lost); len(lost) != 0 {
			t.Errorf("lost %+v", lost)
		}
	})
}

// A lease ends with its validity also if its holder has exceeded MaxHold. Then the next
// waiter gets the key, even if that holder never releases it.
func TestLeaseEndsAfterMaxHold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, _, _ := newEngine()
		r := request(0)
		r.MaxHold = time.Second
		h := hold(t, e, r)
		begun, served := time.Now(), time.Time{}
		waiting(t, e, request(WaitForever), func(*Hold) { served = time.Now() })
		time.Sleep(2 * r.TTL)
		synctest.Wait()
		if took := served.Sub(begun); took < validity || took > r.TTL+recheckInterval {
			t.Errorf("served after %v", took)
		}
		_, _ = h.Release(t.Context())
	})
}
