package engine

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// errDown is the fault of a store that cannot be reached.
var errDown = &store.Fault{Temporary: true, Err: errors.New("down")}

// validity is the validity of a lease of 10 s, by the package comment.
const validity = 10*time.Second - 100*time.Millisecond - 2*time.Millisecond

func TestLeaseIsRenewedWhileHeld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, events := newEngine()
		begun := time.Now()
		h := hold(t, e, request(0))
		time.Sleep(time.Hour)
		if h.Context().Err() != nil || s.value("k") != h.Token() {
			t.Fatal("not held after an hour")
		}
		if first := s.times("renew")[0].Sub(begun); first != request(0).TTL/3 {
			t.Errorf("first renewal after %v", first)
		}
		if n, want := s.count("renew"), int(time.Hour/(request(0).TTL/3)); n < want-1 || n > want+1 {
			t.Errorf("%d renewals, want %d", n, want)
		}
		if long := events.of(HeldLong); len(long) == 0 {
			t.Error("no HeldLong event")
		}
		release(t, h)
		renewals := s.count("renew")
		time.Sleep(time.Hour)
		if s.count("renew") != renewals || s.value("k") != "" {
			t.Error("renewed after its release")
		}
	})
}

func TestLossIsReportedBeforeKeyExpires(t *testing.T) {
	t.Parallel()
	down := func(transition string, _ storetest.AnyRequest) error {
		if transition == "renew" {
			return errDown
		}
		return nil
	}
	slow := func(transition string, _ storetest.AnyRequest) error {
		if transition == "renew" {
			time.Sleep(time.Minute) // a renewal in flight does not extend the validity
		}
		return nil
	}
	tests := []struct {
		name   string
		renew  bool
		before func(string, storetest.AnyRequest) error
	}{
		{"no renewal", false, nil},
		{"renewals fail", true, down},
		{"a renewal hangs", true, slow},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e, s, events := newEngine()
				s.before.set(test.before)
				r := request(0)
				r.Renew = test.renew
				begun := time.Now()
				h := hold(t, e, r)
				<-h.Context().Done()
				if got := time.Since(begun); got != validity {
					t.Errorf("loss after %v, want %v", got, validity)
				}
				if cause := context.Cause(h.Context()); cause != (lossError{Expired}) { //nolint:errorlint // the very cause
					t.Errorf("cause %v", cause)
				}
				if s.value("k") != h.Token() {
					t.Error("the key was gone first")
				}
				synctest.Wait()
				if h.Alive() || len(events.of(Lost)) != 1 {
					t.Errorf("alive %v, events %v", h.Alive(), events.of(Lost))
				}
				if loss, err := h.Release(t.Context()); loss != Expired || err != nil {
					t.Errorf("release: %v, %v", loss, err)
				}
				time.Sleep(time.Hour)
				if e.queueCount() != 0 {
					t.Error("the queue is left")
				}
			})
		})
	}
}

func TestFailedRenewalsAreRetried(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		s.before.set(func(transition string, _ storetest.AnyRequest) error {
			if transition == "renew" && s.count("renew") == 0 && time.Until(keyExpiry(s)) > 2*time.Second {
				return errDown
			}
			return nil
		})
		h := hold(t, e, request(0))
		time.Sleep(time.Minute)
		if h.Context().Err() != nil {
			t.Error("lost although a retry came through in time")
		}
		release(t, h)
	})
}

// keyExpiry returns when the key k of the store expires.
func keyExpiry(s *fakeStore) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keys["k"].until
}

func TestRenewalReportsTakenKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		h := hold(t, e, request(0))
		s.set("k", "another", time.Hour)
		time.Sleep(request(0).TTL/3 + time.Millisecond)
		if cause := context.Cause(h.Context()); cause != (lossError{Taken}) { //nolint:errorlint // the very cause
			t.Errorf("cause %v", cause)
		}
		if loss, _ := h.Release(t.Context()); loss != Taken || s.value("k") != "another" {
			t.Errorf("release: loss %v, key %q", loss, s.value("k"))
		}
	})
}

func TestReleaseReportsTakenKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, events := newEngine()
		h := hold(t, e, request(0))
		s.set("k", "another", time.Hour)
		if loss, err := h.Release(t.Context()); loss != Taken || err != nil {
			t.Errorf("loss %v, error %v", loss, err)
		}
		if len(events.of(Lost)) != 1 || len(events.of(Released)) != 1 {
			t.Errorf("events: %v, %v", events.of(Lost), events.of(Released))
		}
	})
}

func TestReleaseWaitsForRenewalInFlight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		h := hold(t, e, request(0))
		s.before.set(func(transition string, _ storetest.AnyRequest) error {
			if transition == "renew" {
				time.Sleep(time.Second)
			}
			return nil
		})
		time.Sleep(request(0).TTL/3 + time.Millisecond) // a renewal is in flight
		release(t, h)
		if got := s.transitions(); len(got) != 3 || got[1] != "renew" || got[2] != "release" {
			t.Errorf("transitions %v", got)
		}
	})
}

// A lease that is renewed counts from the time when the renewal was sent.
func TestRenewedLeaseCountsFromSending(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		s.after.set(func(transition string, _ storetest.AnyRequest) error {
			if transition == "renew" {
				time.Sleep(bound / 2) // the reply is slow
			}
			return nil
		})
		begun := time.Now()
		h := hold(t, e, request(0))
		time.Sleep(request(0).TTL / 2)
		if got, want := h.ValidUntil(), begun.Add(request(0).TTL/3+validity); !got.Equal(want) {
			t.Errorf("valid for %v after the renewal was sent, want %v", got.Sub(begun)-request(0).TTL/3, validity)
		}
		release(t, h)
	})
}

func TestReleaseIsNotSentDuringRenewal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		h := hold(t, e, request(0))
		s.before.set(func(transition string, _ storetest.AnyRequest) error {
			if transition == "renew" {
				time.Sleep(bound / 2)
			}
			return nil
		})
		time.Sleep(request(0).TTL/3 + time.Millisecond) // one is in flight
		h.BeginRelease()
		synctest.Wait()
		if n := s.begunCount("release"); n != 0 {
			t.Errorf("%d releases sent while a renewal is in flight", n)
		}
		release(t, h)
		if want := []string{"take", "renew", "release"}; !slices.Equal(s.transitions(), want) {
			t.Errorf("transitions %v, want %v", s.transitions(), want)
		}
	})
}

// The events of a hold have the time since the grant.
func TestEventsHaveTimeSinceGrant(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, _, events := newEngine()
		h := hold(t, e, request(0))
		time.Sleep(4 * time.Second)
		release(t, h)
		renewed, released := events.of(Renewed), events.of(Released)
		if len(renewed) != 1 || renewed[0].Held != request(0).TTL/3 || renewed[0].Key != "k" || renewed[0].Err != nil {
			t.Errorf("renewed %+v", renewed)
		}
		if len(released) != 1 || released[0].Held != 4*time.Second {
			t.Errorf("released %+v", released)
		}
	})
}

// The schedule reports each lease when it is due, also after its time has changed and
// after the schedule was stopped.
func TestScheduleReportsOnTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun, at := time.Now(), map[string]time.Duration{}
		var mu sync.Mutex // guards at
		s := schedule{onDue: func(l *lease) {
			mu.Lock()
			defer mu.Unlock()
			at[l.token] = time.Since(begun)
		}}
		set := func(l *lease, due time.Duration) {
			l.validUntil = begun.Add(due)
			s.set(l)
		}
		leases := make([]*lease, 4)
		for i := range leases {
			leases[i] = &lease{leaseState: leaseState{token: strconv.Itoa(i)}}
			set(leases[i], time.Duration(i+1)*time.Second)
		}
		set(leases[3], time.Millisecond)
		set(leases[0], time.Minute)
		time.Sleep(time.Hour)
		synctest.Wait()
		want := map[string]time.Duration{"0": time.Minute, "1": 2 * time.Second, "2": 3 * time.Second, "3": time.Millisecond}
		mu.Lock()
		if !maps.Equal(at, want) {
			t.Errorf("due at %v, want %v", at, want)
		}
		mu.Unlock()
		set(leases[0], 2*time.Hour)
		s.drop(leases[0])
		s.stop()
		set(leases[1], 3*time.Hour)
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if got := at["1"]; got != 3*time.Hour {
			t.Errorf("after the stop it was due at %v", got)
		}
	})
}
