package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// The events of a hold have the time since the grant.
func TestLeaseIsRenewedWhileHeld(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, s, events := newEngine()
		h := hold(t, e, request(0))
		time.Sleep(time.Hour)
		if h.Context().Err() != nil || s.value("k") != h.Token() {
			t.Fatal("not held after an hour")
		}
		if n, want := s.count("renew"), int(time.Hour/(request(0).TTL/3)); n < want-1 || n > want+1 {
			t.Errorf("%d renewals, want %d", n, want)
		}
		if renewed := events.of(Renewed)[0]; renewed.Held != request(0).TTL/3 || renewed.Key != "k" || renewed.Err != nil {
			t.Errorf("renewed %+v", renewed)
		}
		if long := events.of(HeldLong); len(long) == 0 {
			t.Error("no HeldLong event")
		}
		release(t, h)
		if released := events.of(Released); len(released) != 1 || released[0].Held != time.Hour {
			t.Errorf("released %+v", released)
		}
		renewals := s.count("renew")
		time.Sleep(time.Hour)
		if s.count("renew") != renewals || s.value("k") != "" {
			t.Error("renewed after its release")
		}
	})
}

func TestLossIsReportedBeforeKeyExpires(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		renew  bool
		before func(string, storetest.AnyRequest) error
	}{
		{"no renewal", false, nil},
		{"renewals fail", true, fails(errDown, "renew")},
		{"a renewal hangs", true, delays(time.Minute, "renew")},
	} {
		row(t, test.name, func(t *testing.T) {
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
			releaseLost(t, h, Expired)
			time.Sleep(time.Hour)
			checkNoQueue(t, e)
		})
	}
}

// A renewal that fails is resent after a twentieth of the TTL, or after maxPause.
func TestFailedRenewalsAreRetried(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ ttl, pause time.Duration }{
		"a short TTL": {time.Second, 50 * time.Millisecond},
		"a long TTL":  {10 * time.Minute, maxPause},
	} {
		row(t, name, func(t *testing.T) {
			p := newProcesses(1)
			var sent []time.Time
			p.stores[0].before.set(func(transition string, _ storetest.AnyRequest) error {
				if transition == "renew" && len(sent) < 3 {
					sent = append(sent, time.Now())
					return errDown
				}
				return nil
			})
			r := request(0)
			r.TTL = test.ttl
			h := hold(t, p.engines[0], r)
			sleep(test.ttl)
			for i := range len(sent) - 1 {
				if got := sent[i+1].Sub(sent[i]); got != test.pause {
					t.Errorf("renewal %d is sent again after %v, want %v", i, got, test.pause)
				}
			}
			if len(sent) != 3 {
				t.Errorf("%d renewals failed, want 3", len(sent))
			}
			release(t, h)
			p.checkIdle(t)
		})
	}
}

func TestRenewalReportsTakenKey(t *testing.T) {
	bubble(t, func(t *testing.T) {
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

// Each renewal is sent a third of the TTL after the one before, even if replies are slow: the
// lease counts from the time of sending.
func TestRenewedLeaseCountsFromSending(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, s, _ := newEngine()
		s.after.set(delays(bound/2, "renew"))
		last := time.Now()
		h := hold(t, e, request(0))
		time.Sleep(request(0).TTL / 2)
		if got, want := h.ValidUntil(), last.Add(request(0).TTL/3+validity); !got.Equal(want) {
			t.Errorf("valid until %v, want %v", got, want)
		}
		time.Sleep(time.Minute - request(0).TTL/2)
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

// The schedule reports each lease when it is due, also after its time has changed and
// after the schedule was stopped.
func TestScheduleReportsOnTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
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
		sleep(time.Hour)
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
		sleep(3 * time.Hour)
		mu.Lock()
		defer mu.Unlock()
		if got := at["1"]; got != 3*time.Hour {
			t.Errorf("after the stop it was due at %v", got)
		}
	})
}

// An event of a failed renewal is repeated if the renewal before it failed too.
func TestFailedRenewalsAreRepeatedEvents(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, s, events := newEngine()
		renewals := 0
		s.before.set(func(transition string, _ storetest.AnyRequest) error {
			if transition != "renew" {
				return nil
			}
			if renewals++; renewals == 3 || renewals > 5 {
				return nil
			}
			return errDown
		})
		h := hold(t, e, request(0))
		time.Sleep(2 * request(0).TTL)
		release(t, h)
		var got []string
		for _, event := range events.of(Renewed) {
			got = append(got, fmt.Sprint(event.Err != nil, event.Repeated))
		}
		want := []string{"true false", "true true", "false false", "true false", "true true", "false false"}
		if len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
			t.Errorf("the renewals failed, repeatedly: %v, want %v", got, want)
		}
	})
}
