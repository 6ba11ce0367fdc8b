package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// Each renewal is sent a third of the TTL after the one before, even if replies are
// slow: the lease counts from the time of sending.
func TestRenewalsAreAThirdOfTheTTLApart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		s.after.set(func(transition string, _ storetest.AnyRequest) error {
			if transition == "renew" {
				time.Sleep(bound / 2)
			}
			return nil
		})
		last := time.Now()
		h := hold(t, e, request(0))
		time.Sleep(time.Minute)
		release(t, h)
		times := s.times("renew")
		if want := int(time.Minute / (request(0).TTL / 3)); len(times) != want {
			t.Errorf("%d renewals in a minute, want %d", len(times), want)
		}
		for i, at := range times {
			if got, want := at.Sub(last), request(0).TTL/3; got != want {
				t.Errorf("renewal %d is sent after %v, want %v", i, got, want)
			}
			last = at
		}
	})
}

// The first holder wants renewal, and its successor does not. The renewal that
// was due for the first holder must not prolong the lease of the successor.
func TestSuccessorWithoutRenewalIsNotRenewed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		h := hold(t, e, request(0))
		next := request(WaitForever)
		next.Renew = false
		var held time.Duration
		var cause error
		go func() {
			successor, err := e.Acquire(t.Context(), next)
			if err != nil {
				t.Errorf("waiter: %v", err)
				return
			}
			granted := time.Now()
			<-successor.Context().Done()
			held, cause = time.Since(granted), context.Cause(successor.Context())
			successor.BeginRelease()
		}()
		synctest.Wait()
		release(t, h) // the lease is passed on, after one renewal
		time.Sleep(2 * next.TTL)
		synctest.Wait()
		if held != validity || cause != (lossError{Expired}) { //nolint:errorlint // the very cause
			t.Errorf("the successor lost its lease after %v, want %v; cause %v", held, validity, cause)
		}
		if n := s.begunCount("renew"); n != 1 {
			t.Errorf("%d renewals, want the one before the pass", n)
		}
		if e.queueCount() != 0 {
			t.Error("the queue is left")
		}
	})
}
