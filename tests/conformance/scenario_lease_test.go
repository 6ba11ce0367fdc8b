package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// leaseScenarios test attempts that never end, and leases that are lost.
func leaseScenarios() []testCase {
	return []testCase{
		{"after a crashed attempt the outcome is unknown until an operator resolves it", everywhere, attemptDies},
		{"after a crashed attempt the next attempt runs with Rerun", everywhere, attemptRunsAgain},
		{"an attempt loses its lease", everywhere, attemptLosesLease},
		{"an attempt loses its lease, and its handler does not answer", everywhere, attemptIsCutOff},
		{"an attempt loses its lease, and another attempt begins", everywhere, attemptIsOvertaken},
	}
}

// shortLease is the TTL of leases that are to expire. A command may take a quarter of it, so
// on a busy machine it may take several tries to lock: such requests wait. The race detector
// makes all code about ten times slower.
var shortLease = usualLease()

func usualLease() time.Duration {
	if suite.Race {
		return 4 * time.Second
	}
	return 2 * time.Second
}

// beginAndLose begins the attempt of a payment in another process and never ends it. It
// returns when the lease has expired.
func (e *environment) beginAndLose(key string) {
	e.Helper()
	settings := []core.Option{core.WithTTL(shortLease), core.WithRenewal(false), core.WithWait(patience)}
	attempt, err := e.another().With(settings...).Begin(e.Context(), e.endpointKey(key), nil)
	if err != nil {
		e.Fatalf("Begin: %v", err)
	}
	suite.ReceiveAnywhere(e.T, "the lease ends", attempt.Lease().Context().Done())
	lock := e.prefix + attempt.Lease().Key()
	suite.Eventually(e.T, "the lock ends", func() bool { // Redis keeps the lock a little longer than the lease
		return e.rdb.Exists(e.Context(), lock).Val() == 0
	})
}

func attemptDies(e *environment) {
	s := e.serveEndpoint(endpoint{own: ownOptions{noFingerprint: true}})
	e.beginAndLose("dies")
	s.refuses(core.ErrOutcomeUnknown, payment("dies"))
	s.refuses(core.ErrOutcomeUnknown, payment("dies"))
	if found := e.events.await(e.T, core.OutcomeUnknown, 1)[0]; found.Name != "POST /payments" { // as alerts show it
		e.Errorf("the unknown outcome has the name %q", found.Name)
	}
	e.resolve("dies", core.NotDone())
	s.replays(s.runsWith(http.StatusCreated, payment("dies")), payment("dies"))
}

func attemptRunsAgain(e *environment) {
	s := e.serveEndpoint(endpoint{
		own:     ownOptions{noFingerprint: true},
		options: []core.Option{core.WithRerunUnknown(true)},
		handler: func(t invocation) {
			if n := t.attempt.Number(); n != 3 {
				e.Errorf("the attempt is number %d", n)
			}
			t.WriteHeader(http.StatusCreated)
		},
	})
	for range 2 { // two processes
		rerun := e.another().With(core.WithRenewal(false), core.WithRerunUnknown(true))
		attempt, err := rerun.Begin(e.Context(), e.endpointKey("again"), nil)
		if err != nil {
			e.Fatalf("Begin: %v", err)
		}
		s.refuses(core.ErrBusy, payment("again"))
		e.free(attempt.Lease().Key()) // as the end of its TTL does
	}
	s.replays(s.runsWith(http.StatusCreated, payment("again")), payment("again"))
}

// A handler that returns when its lease is lost, without an answer, must not look like a success.
// Its client gets what a copy gets, or may send the request again if nothing has happened.
func attemptIsCutOff(e *environment) {
	for decision, refusal := range map[core.Ending]error{core.EndUndecided: core.ErrOutcomeUnknown, core.EndNoEffect: core.ErrUnavailable} {
		s := e.serveEndpoint(endpoint{
			options: []core.Option{core.WithTTL(shortLease), core.WithWait(patience)},
			handler: func(t invocation) {
				t.Header().Set("Retry-After", "9")
				t.attempt.Decide(decision)
				e.loseLease(t.r.Context(), t.attempt.Lease().Key())
			},
		})
		request := payment(fmt.Sprint("cut", decision))
		s.wantRefused(refusal, s.do(e.Context(), request))
		if n := s.runs.Load(); n != 1 {
			e.Errorf("%d runs", n)
		}
		if decision == core.EndUndecided {
			s.refuses(refusal, request)
		}
	}
}

// No other attempt has begun, so the answer is stored.
func attemptLosesLease(e *environment) {
	s := e.serveEndpoint(endpoint{
		options: []core.Option{core.WithTTL(shortLease), core.WithWait(patience)},
		handler: func(t invocation) {
			e.loseLease(t.r.Context(), t.attempt.Lease().Key())
			if cause := context.Cause(t.r.Context()); !errors.Is(cause, core.ErrLost) {
				e.Errorf("the cause is %v", cause)
			}
			t.WriteHeader(http.StatusCreated)
		},
	})
	s.replays(s.runsWith(http.StatusCreated, payment("lost")), payment("lost"))
}

// The client of the first attempt gets its own answer. All others get the second answer.
func attemptIsOvertaken(e *environment) {
	var s *service
	var second httpAnswer
	s = e.serveEndpoint(endpoint{
		options: []core.Option{core.WithTTL(shortLease), core.WithWait(patience), core.WithRerunUnknown(true)},
		handler: func(t invocation) {
			if n := t.attempt.Number(); n > 1 {
				t.WriteHeader(http.StatusAccepted)
				return
			}
			e.loseLease(t.r.Context(), t.attempt.Lease().Key())
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

// faultScenarios make Redis unavailable, or lose data or replies.
func faultScenarios() []testCase {
	return []testCase{
		{"Redis is unavailable before the request", everywhere, downBefore},
		{"Redis becomes unavailable while the handler runs", everywhere, downMeanwhile},
		{"the record is deleted while the handler runs", everywhere, recordVanishes},
	}
}

func downBefore(e *environment) {
	s := e.serveEndpoint(endpoint{})
	e.proxy.Refuse(true)
	s.refuses(&core.Error{Kind: core.ErrUnavailable, RetryAfter: time.Second}, payment("down"))
	e.proxy.Refuse(false)
	s.replays(s.runsWith(http.StatusCreated, payment("down")), payment("down"))
}

// The client gets the answer, and so do its copies, although it is not stored yet. Another request with the key is to come
// again. Once Redis is back, the answer is stored.
func downMeanwhile(e *environment) {
	s := e.serveEndpoint(endpoint{
		options: []core.Option{core.WithTTL(shortLease), core.WithWait(patience)},
		handler: func(t invocation) {
			e.proxy.Refuse(true)
			t.WriteHeader(http.StatusCreated)
			_, _ = t.Write([]byte("paid"))
		},
	})
	first := s.runsWith(http.StatusCreated, payment("down"))
	if first.body != "paid" {
		e.Errorf("the first answer is %+v", first)
	}
	for _, event := range e.events.await(e.T, core.Committed, 1) {
		if !errors.Is(event.Err, core.ErrUnavailable) {
			e.Errorf("committed: %v", event.Err)
		}
	}
	for _, event := range e.events.await(e.T, core.OutcomeUnknown, 1) {
		if endpoint, _ := event.Key.EndpointKey(); endpoint != e.endpointKey("down") || !errors.Is(event.Err, core.ErrUnavailable) {
			e.Errorf("unknown: %+v of the endpoint %q", event, endpoint)
		}
	}
	s.wantReplay(first, s.do(e.Context(), payment("down")))
	other := payment("down")
	other.body = "other"
	s.refuses(&core.Error{Kind: core.ErrUnavailable, RetryAfter: time.Second}, other)
	e.proxy.Refuse(false)
	e.events.await(e.T, core.Committed, 2)
	s.replays(first, payment("down"))
}

func recordVanishes(e *environment) {
	s := e.serveEndpoint(endpoint{handler: func(t invocation) {
		e.forget()
		t.WriteHeader(http.StatusCreated)
	}})
	s.replays(s.runsWith(http.StatusCreated, payment("vanishes")), payment("vanishes"))
	e.events.await(e.T, core.Restored, 1)
}

// forget deletes all keys of the case, as the loss of a server does.
func (e *environment) forget() {
	e.Helper()
	names := e.names(e.Context(), "")
	if len(names) == 0 {
		e.Error("there is nothing to delete")
	}
	for _, name := range names { // one by one, because they may be in different slots
		if err := e.rdb.Del(e.Context(), name).Err(); err != nil {
			e.Errorf("DEL: %v", err)
		}
	}
}
