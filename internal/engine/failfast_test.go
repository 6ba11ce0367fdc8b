package engine

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

func TestNewCallersAreRefusedAtOnceInAnOutage(t *testing.T) {
	t.Parallel()
	for _, wait := range []time.Duration{0, 5 * time.Second, WaitForever} {
		synctest.Test(t, func(t *testing.T) {
			e, s, _ := newEngine()
			s.setDown(true)
			time.Sleep(failFast - time.Nanosecond)
			early := acquiring(t, e, request(2*time.Second))
			time.Sleep(time.Nanosecond)
			begun := time.Now()
			_, err := e.Acquire(t.Context(), request(wait))
			if reasonOf(t, err) != Unavailable || time.Since(begun) != 0 {
				t.Errorf("wait %v: refused with %v after %v", wait, err, time.Since(begun))
			}
			if !errors.Is(err.(*Refusal).Fault, errDown) { //nolint:errorlint,forcetypeassert // checked by reasonOf
				t.Errorf("the fault is %v", err)
			}
			if err := <-early; reasonOf(t, err) != Unavailable || time.Since(begun) != 2*time.Second-time.Nanosecond {
				t.Errorf("a caller before that was refused with %v, %v later", err, time.Since(begun))
			}
			synctest.Wait()
			checkNoQueue(t, e)
			if s.refused != 2 {
				t.Errorf("%d callers are counted as refused by the outage", s.refused)
			}
			s.setDown(false)
			release(t, hold(t, e, request(0)))
		})
	}
}

func TestWaitersKeepTheirPlaceInAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, s, _ := newEngine()
		s.set("k", "foreign", 2*time.Second)
		waits := acquiring(t, e, request(WaitForever))
		s.setDown(true)
		time.Sleep(time.Minute)
		refuses(t, e, request(WaitForever), Unavailable)
		s.setDown(false)
		back := time.Now()
		if err := <-waits; err != nil || time.Since(back) > maxPause {
			t.Errorf("the waiter: %v, %v after the end of the outage", err, time.Since(back))
		}
	})
}

// A lease passes on in an outage also if its budget is spent: no other process can get the key.
func TestLeaseIsPassedOnInAnOutage(t *testing.T) {
	t.Parallel()
	for _, unlimited := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			e, s, _ := newEngine()
			r := request(0)
			r.TTL = time.Hour
			h := hold(t, e, r)
			if unlimited {
				passesUnlimited(h)
			}
			s.setDown(true)
			time.Sleep(time.Minute)
			refuses(t, e, request(0), Busy)
			waits := acquiring(t, e, request(WaitForever))
			release(t, h)
			synctest.Wait()
			select {
			case err := <-waits:
				if err != nil && !errors.Is(err, errDown) { // the release of the last holder fails
					t.Errorf("the waiter: %v", err)
				}
			default:
				t.Errorf("unlimited %v: the lease was not passed on", unlimited)
			}
			s.setDown(false)
			time.Sleep(time.Minute) // the release is sent again
		})
	}
}

// Some leases do not pass on without a command. A new caller would only wait for the end of the
// outage.
func TestNewCallerIsRefusedBehindALeaseThatDoesNotPass(t *testing.T) {
	t.Parallel()
	wants := request(5 * time.Second)
	begins := func(r *Request) { r.Attempt = &Attempt{Fingerprint: []byte("a"), Keep: time.Hour} }
	for name, test := range map[string]struct{ holder, caller func(*Request) }{
		"the caller begins an attempt": {nil, begins},
		"the holder runs an attempt":   {begins, nil},
		"extended":                     {nil, nil},
		"the key stays locked":         {func(r *Request) { r.MinHold = 2 * time.Minute }, nil},
		"no fencing number is left":    {func(r *Request) { r.Fencing = true }, func(r *Request) { r.Fencing = true }},
		"a longer TTL is wanted":       {nil, func(r *Request) { r.TTL = 2 * time.Hour }},
		"too little is left":           {func(r *Request) { r.TTL, r.Renew = 65*time.Second, false }, func(r *Request) { r.TTL = time.Minute }},
	} {
		synctest.Test(t, func(t *testing.T) {
			e, s, _ := newEngine()
			r, caller := request(0), wants
			r.TTL = time.Hour
			if test.holder != nil {
				test.holder(&r)
			}
			if test.caller != nil {
				test.caller(&caller)
			}
			h := hold(t, e, r)
			if name == "extended" {
				if _, err := h.Extend(t.Context(), time.Hour); err != nil {
					t.Fatal(err)
				}
			}
			s.setDown(true)
			time.Sleep(time.Minute)
			begun := time.Now()
			if _, err := e.Acquire(t.Context(), caller); reasonOf(t, err) != Unavailable || time.Since(begun) != 0 {
				t.Errorf("%s: %v after %v", name, err, time.Since(begun))
			}
			s.setDown(false)
			release(t, h)
		})
	}
}

// The record of an attempt is in the store, so a copy gets nothing from a holder of this
// process while the store is down.
func TestCopyIsRefusedAtOnceInAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, s, _ := newEngine()
		r := request(WaitForever)
		r.TTL, r.Attempt = time.Hour, &Attempt{Fingerprint: []byte("a"), Keep: time.Hour}
		hold(t, e, r)
		s.setDown(true)
		time.Sleep(time.Minute)
		refuses(t, e, r, Unavailable)
		other := r
		other.Attempt = &Attempt{Fingerprint: []byte("b"), Keep: time.Hour}
		refuses(t, e, other, Mismatch)
		r.Wait = 0
		refuses(t, e, r, Busy)
	})
}

// A caller that runs without the lock in an outage does so only after a command of its own
// has failed. If the command is answered, it waits as any other caller.
func TestFailOpenCallerSendsACommandInAnOutage(t *testing.T) {
	t.Parallel()
	for _, wait := range []time.Duration{0, WaitForever} {
		synctest.Test(t, func(t *testing.T) {
			e, s, _ := newEngine()
			s.setDown(true)
			blocked := acquiring(t, e, request(20*time.Second)) // keeps the queue pausing
			time.Sleep(10 * time.Second)
			r := request(wait)
			r.FailOpen = true
			sent, begun := s.begunCount("take")+s.begunCount("enqueue"), time.Now()
			if _, err := e.Acquire(t.Context(), r); reasonOf(t, err) != Unavailable || time.Since(begun) != 0 {
				t.Errorf("wait %v: %v after %v", wait, err, time.Since(begun))
			}
			if n := s.begunCount("take") + s.begunCount("enqueue") - sent; n != 1 {
				t.Errorf("wait %v: sent %d commands", wait, n)
			}
			s.set("k", "foreign", 2*time.Second)
			s.before.set(func(string, storetest.AnyRequest) error { return nil }) // no probe has noticed yet
			begun = time.Now()
			switch _, err := e.Acquire(t.Context(), r); {
			case wait == 0 && reasonOf(t, err) != Busy:
				t.Errorf("the key is locked: %v", err)
			case wait != 0 && (err != nil || time.Since(begun) == 0):
				t.Errorf("the key is free after 2 s: %v after %v", err, time.Since(begun))
			}
			if wait == 0 {
				if err := <-blocked; err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestFailFastCanBeSwitchedOff(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, s, _ := newEngine()
		e.failFast = 0
		s.setDown(true)
		time.Sleep(time.Hour)
		begun := time.Now()
		if _, err := e.Acquire(t.Context(), request(5*time.Second)); reasonOf(t, err) != Unavailable || time.Since(begun) != 5*time.Second {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
	})
}
