package conformance

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// insideScenarios test what an adapter tells an attempt of its handler: what has become of the request
// in middlewares between Idempotent and the handler, and the error that the handler gives to its
// framework.
func insideScenarios() []testCase {
	return []testCase{
		{"a refusal of a lock inside is never stored", everywhere, func(e *environment) { refusedInside(e, noHook) }},
		{"a refusal of a lock inside by an error handler is never stored", everywhere, func(e *environment) { refusedInside(e, ownHook) }},
		{"busy has the status that the application has chosen", everywhere, busyHasTheStatus},
		{"a failure of a handler behind a lock inside frees the key", everywhere, failsInside},
		{"an error that says that time was over, with the status of an answer", returnedErrors, endsLate},
		{"an error of the context of a lock inside that was lost", returnedErrors, losesLockInside},
		{"an error of another lease that was lost", returnedErrors, losesAnotherLease},
	}
}

// behindTheKey is a payment that needs the lock inside.
func behindTheKey() httpRequest {
	r := payment("inside")
	r.header = http.Header{"X-Key": {theKey}}
	return r
}

// The endpoint stores each status. So only what the adapter reports shows that nothing was done.
func refusedInside(e *environment, h hook) {
	for _, status := range busyStatuses {
		s := e.serveEndpoint(endpoint{
			inside: &lock{keys: []key{byHeader}, hook: h, options: []core.Option{core.WithBusyStatus(status)}},
			own:    ownOptions{stored: func(int) bool { return true }},
		})
		r := behindTheKey()
		r.keys = []string{fmt.Sprint("inside", status)}
		e.take(theKey)
		if first := s.do(e.Context(), r); first.status != cmp.Or(e.f.hooked.status*int(h), status) || s.runs.Load() != 0 {
			e.Errorf("%d runs, and the answer is %+v", s.runs.Load(), first)
		}
		e.free(theKey)
		s.replays(s.runsWith(http.StatusCreated, r), r)
	}
}

// busyStatuses are those that WithBusyStatus accepts.
var busyStatuses = []int{409, 423, 429, 503}

// The status is that of WithBusyStatus, of a lock and of an idempotent request, for both codes.
func busyHasTheStatus(e *environment) {
	for _, status := range busyStatuses {
		opts := []core.Option{core.WithBusyStatus(status)}
		locked := e.serve(route{locks: []lock{{keys: []key{byHeader}, options: opts}}})
		e.take(theKey)
		locked.wantRefusal(plain, outcome{status: status, code: "busy", retryAfter: defaultRetryAfter})
		e.free(theKey)
		if status == http.StatusTooManyRequests { // once, because it takes time
			opts = append(opts, core.WithWait(shortWait))
		}
		var during httpAnswer
		var s *service
		s = e.serveEndpoint(endpoint{options: opts, handler: func(t invocation) {
			during = s.do(e.Context(), payment(t.r.Method))
			t.WriteHeader(status)
		}})
		s.runsWith(status, payment(http.MethodPost))
		problem, ok := problemIn([]byte(during.body))
		if !ok || during.status != status || problem.Status != status || problem.Code != codeOf(len(opts) > 1) {
			e.Errorf("the copy gets %+v", during)
		}
	}
}

// codeOf returns the code of a request that another one is in the way of.
func codeOf(waits bool) string {
	if waits {
		return "wait_timeout"
	}
	return "busy"
}

// Each middleware inside has to report that its handler has returned, and that the request has left.
func failsInside(e *environment) {
	s := e.serveEndpoint(endpoint{
		inside:  &lock{keys: []key{byHeader}},
		handler: func(t invocation) { t.WriteHeader(http.StatusServiceUnavailable) },
	})
	for range 2 {
		s.runsWith(http.StatusServiceUnavailable, behindTheKey())
	}
}

// What timed out may have taken effect.
func endsLate(e *environment) {
	s := e.serveEndpoint(endpoint{handler: func(t invocation) {
		t.fail(http.StatusUnprocessableEntity, context.DeadlineExceeded)
	}})
	s.runsWith(http.StatusUnprocessableEntity, payment("late"))
	s.refuses(core.ErrOutcomeUnknown, payment("late"))
}

// The lease of the attempt goes on in both cases, and the handler gives no answer of its own.
func losesLockInside(e *environment) {
	s := e.serveEndpoint(endpoint{
		inside: &lock{keys: []key{byHeader}, options: []core.Option{core.WithMaxHold(time.Millisecond)}},
		handler: func(t invocation) {
			suite.ReceiveAnywhere(e.T, "the lock inside is lost", t.r.Context().Done())
			t.fail(0, t.r.Context().Err())
		},
	})
	s.endsUnknown()
}

func losesAnotherLease(e *environment) {
	e.serveEndpoint(endpoint{handler: func(t invocation) { t.fail(0, core.ErrLost) }}).endsUnknown()
}

// endsUnknown fails the test unless a request and its copy are refused as unknown after one run.
func (s *service) endsUnknown() {
	s.Helper()
	s.wantRefused(core.ErrOutcomeUnknown, s.do(s.Context(), behindTheKey()))
	s.refuses(core.ErrOutcomeUnknown, behindTheKey())
}
