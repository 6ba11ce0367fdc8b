package conformance

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/reqlock/reqlock/core"
)

// crashScenarios are about attempts that die, and leases that are lost.
func crashScenarios() []testCase {
	return []testCase{
		{"an attempt dies: its outcome is unknown, until an operator resolves it", everywhere, attemptDies},
		{"an attempt dies, and the next one runs, and knows", everywhere, attemptRunsAgain},
		{"an attempt loses its lease", everywhere, attemptLosesLease},
		{"an attempt loses its lease, and another one has begun", everywhere, attemptIsOvertaken},
		{"the record is forgotten after its time", everywhere, recordExpires},
	}
}

// shortLease is the lease of attempts that are to lose it. A command has a quarter
// of it; so those that take one wait for it, which on a busy machine may take several.
const shortLease = 2 * time.Second

// die begins the attempt of a payment in another process, which dies then.
func (e *env) die(key string) {
	e.Helper()
	settings := []core.Option{core.WithTTL(shortLease), core.WithRenewal(false), core.WithWait(patience)}
	attempt, err := e.another().With(settings...).Begin(e.Context(), endpointKey(key), nil)
	if err != nil {
		e.Fatalf("Begin: %v", err)
	}
	await(e.T, "the lease ends", attempt.Lease().Context().Done())
	lock := e.prefix + attempt.Lease().Key()
	for e.rdb.Exists(e.Context(), lock).Val() == 1 { // a little longer than it is relied on
		time.Sleep(time.Millisecond)
	}
}

func attemptDies(e *env) {
	s := e.shop(endpoint{own: ownOptions{noFingerprint: true}})
	e.die("dies")
	s.refuses(core.ErrInterrupted, payment("dies"))
	s.refuses(core.ErrInterrupted, payment("dies"))
	if err := e.locks.Resolve(e.Context(), endpointKey("dies")); err != nil {
		e.Errorf("Resolve: %v", err)
	}
	s.replays(s.runsWith(http.StatusCreated, payment("dies")), payment("dies"))
}

func attemptRunsAgain(e *env) {
	s := e.shop(endpoint{
		own:     ownOptions{noFingerprint: true},
		options: []core.Option{core.WithInterrupted(core.Rerun)},
		handler: func(t turn) {
			if n := t.attempt.Number(); n != 3 {
				e.Errorf("the attempt is number %d", n)
			}
			t.WriteHeader(http.StatusCreated)
		},
	})
	e.die("again")
	rerun := e.another().With(core.WithTTL(2*shortLease), core.WithRenewal(false), core.WithInterrupted(core.Rerun))
	second, err := rerun.Begin(e.Context(), endpointKey("again"), nil)
	if err != nil {
		e.Fatalf("Begin: %v", err)
	}
	s.refuses(core.ErrBusy, payment("again"))
	await(e.T, "the lease ends", second.Lease().Context().Done())
	for e.rdb.Exists(e.Context(), e.prefix+second.Lease().Key()).Val() == 1 {
		time.Sleep(time.Millisecond)
	}
	s.replays(s.runsWith(http.StatusCreated, payment("again")), payment("again"))
}

// Nobody else has begun: the answer is kept.
func attemptLosesLease(e *env) {
	s := e.shop(endpoint{
		options: []core.Option{core.WithTTL(shortLease), core.WithWait(patience)},
		handler: func(t turn) {
			e.free(t.attempt.Lease().Key())
			await(e.T, "the context ends", t.r.Context().Done())
			if cause := context.Cause(t.r.Context()); !errors.Is(cause, core.ErrLost) {
				e.Errorf("the cause is %v", cause)
			}
			t.WriteHeader(http.StatusCreated)
		},
	})
	s.replays(s.runsWith(http.StatusCreated, payment("lost")), payment("lost"))
}

// The first one's client gets its own answer; all others get the second one's.
func attemptIsOvertaken(e *env) {
	var s *shop
	var second got
	s = e.shop(endpoint{
		options: []core.Option{core.WithTTL(shortLease), core.WithWait(patience), core.WithInterrupted(core.Rerun)},
		handler: func(t turn) {
			if n := t.attempt.Number(); n > 1 {
				t.WriteHeader(http.StatusAccepted)
				return
			}
			e.free(t.attempt.Lease().Key())
			await(e.T, "the context ends", t.r.Context().Done())
			second = s.do(e.Context(), payment("overtaken"))
			t.WriteHeader(http.StatusCreated)
		},
	})
	if first := s.do(e.Context(), payment("overtaken")); first.status != http.StatusCreated {
		e.Errorf("the first answer is %+v", first)
	}
	if second.status != http.StatusAccepted {
		e.Errorf("the second answer is %+v", second)
	}
	s.replays(second, payment("overtaken"))
	for _, event := range e.events.await(e.T, core.Committed, 2) {
		if event.Err != nil && !errors.Is(event.Err, core.ErrLost) {
			e.Errorf("committed: %v", event.Err)
		}
	}
}

func recordExpires(e *env) {
	// The replay has to come within this time.
	s := e.shop(endpoint{options: []core.Option{core.WithRetention(4 * time.Second), core.WithTTL(4 * time.Second)}})
	s.replays(s.runsWith(http.StatusCreated, payment("expires")), payment("expires"))
	for len(e.names(e.Context(), ":r")) > 0 {
		time.Sleep(10 * time.Millisecond)
	}
	s.runsWith(http.StatusCreated, payment("expires"))
}
