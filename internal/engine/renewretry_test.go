package engine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// A renewal that fails is resent after a twentieth of the TTL, or after maxPause.
func TestFailedRenewalIsSentAgainInTime(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ ttl, pause time.Duration }{
		"a short TTL": {time.Second, 50 * time.Millisecond},
		"a long TTL":  {10 * time.Minute, maxPause},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
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
				time.Sleep(test.ttl)
				synctest.Wait()
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
		})
	}
}

// An event of a failed renewal is repeated if the renewal before it failed too.
func TestFailedRenewalsAreRepeatedEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
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

// The renewals of other leases hang. A lease that waits for them is still renewed, two
// command bounds before its end.
func TestLeaseIsRenewedBeforeEndWhileOthersHang(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		s.before.set(func(transition string, r storetest.AnyRequest) error {
			if transition == "renew" && strings.HasPrefix(r.Key, "slow") {
				time.Sleep(time.Minute)
			}
			return nil
		})
		slow := request(0)
		for i := range maxRenewals {
			slow.Key = "slow" + strconv.Itoa(i)
			hold(t, e, slow)
		}
		time.Sleep(20 * time.Millisecond) // those leases are due before
		granted := time.Now()
		h := hold(t, e, request(0))
		time.Sleep(request(0).TTL)
		if !h.Alive() {
			t.Error("the lease was lost")
		}
		times := renewalsOf(s, h.Token())
		if len(times) == 0 {
			t.Fatal("no renewal")
		}
		if got, want := times[0].Sub(granted), validity-2*bound; got != want {
			t.Errorf("renewed after %v, want %v", got, want)
		}
		time.Sleep(2 * time.Minute) // its turns in the queue come meanwhile
		times = renewalsOf(s, h.Token())
		for i := range len(times) - 1 {
			if gap := times[i+1].Sub(times[i]); gap < time.Second {
				t.Errorf("renewal %d is sent %v after the one before it", i+1, gap)
			}
		}
		h.BeginRelease()
		_ = e.Close(canceledContext())
		time.Sleep(time.Hour)
	})
}
