package conformance

import (
	"net/http"
	"strconv"

	"github.com/reqlock/reqlock/core"
)

// statusScenarios test which answers are stored.
func statusScenarios() []testCase {
	return []testCase{
		{"2xx, 3xx and most of 4xx are stored", everywhere, keptStatuses},
		{"501, 503, 511, and refusals that can change, free the key", everywhere, freeingStatuses},
		{"other failures and unknown statuses leave the outcome unknown", everywhere, uncertainStatuses},
		{"other failures free the key, by an option", everywhere, freedStatuses},
		{"failures by an option of the application", everywhere, ownFailures},
		{"statuses by an option of the application", everywhere, ownStatuses},
		{"an error in the framework's own way", everywhere, ownErrors},
		{"a status without a body, in the framework's own way", everywhere, bareStatus},
		{"the handler decides: store", everywhere, decideStore},
		{"the handler decides: drop", everywhere, decideDrop},
		{"the handler decides: uncertain", everywhere, decideUncertain},
		{"the handler decides: no effect", everywhere, decideNoEffect},
	}
}

// answering returns an endpoint whose handler answers with a status.
func answering(status *int) endpoint {
	return endpoint{handler: func(t invocation) {
		t.WriteHeader(*status)
		_, _ = t.Write([]byte("answered"))
	}}
}

func keptStatuses(e *environment) {
	var status int
	s := e.serveEndpoint(answering(&status))
	for _, status = range []int{200, 201, 202, 299, 301, 303, 307, 400, 402, 404, 405, 410, 412, 413, 422, 428, 451} {
		request := payment(strconv.Itoa(status))
		s.replays(s.runsWith(status, request), request)
	}
}

func freeingStatuses(e *environment) {
	var status int
	s := e.serveEndpoint(answering(&status))
	for _, status = range []int{401, 403, 408, 409, 423, 425, 429, 501, 503, 511} {
		s.runsWith(status, payment("free"))
	}
	status = http.StatusCreated
	s.replays(s.runsWith(status, payment("free")), payment("free"))
}

// uncertainOnes are the statuses that leave the outcome unknown by default.
var uncertainOnes = []int{499, 500, 502, 504, 505, 507, 520, 524, 599, 600, 999}

func uncertainStatuses(e *environment) {
	var status int
	s := e.serveEndpoint(answering(&status))
	for _, status = range uncertainOnes {
		request := payment(strconv.Itoa(status))
		s.runsWith(status, request)
		s.refuses(core.ErrInterrupted, request)
	}
}

func freedStatuses(e *environment) {
	var status int
	point := answering(&status)
	point.own.freeOnFailure = true
	s := e.serveEndpoint(point)
	for _, status = range uncertainOnes {
		s.runsWith(status, payment("freed"))
	}
	status = http.StatusCreated
	s.replays(s.runsWith(status, payment("freed")), payment("freed"))
}

// WithUncertain decides before WithStored, about failures only.
func ownFailures(e *environment) {
	var status int
	point := answering(&status)
	point.own.stored = func(int) bool { return true }
	point.own.uncertain = func(f core.Failure) bool { return f.Status == http.StatusConflict || f.Status < http.StatusBadRequest }
	s := e.serveEndpoint(point)
	for _, status = range []int{http.StatusCreated, http.StatusInternalServerError, http.StatusServiceUnavailable} {
		request := payment(strconv.Itoa(status))
		s.replays(s.runsWith(status, request), request)
	}
	status = http.StatusConflict
	s.runsWith(status, payment("own"))
	s.refuses(core.ErrInterrupted, payment("own"))
}

func ownStatuses(e *environment) {
	var status int
	point := answering(&status)
	point.own.stored = func(status int) bool { return status == http.StatusTeapot || status/100 == 5 }
	s := e.serveEndpoint(point)
	status = http.StatusCreated
	s.runsWith(status, payment("own"))
	status = http.StatusServiceUnavailable
	s.replays(s.runsWith(status, payment("own")), payment("own"))
	status = http.StatusInternalServerError // is known, since it is stored
	s.replays(s.runsWith(status, payment("own-500")), payment("own-500"))
}

// The answer that the framework makes of an error is stored by its status, as any answer.
func ownErrors(e *environment) {
	status := http.StatusServiceUnavailable
	s := e.serveEndpoint(endpoint{handler: func(t invocation) { t.fail(status) }})
	s.runsWith(status, payment("error"))
	status = http.StatusUnprocessableEntity
	s.replays(s.runsWith(status, payment("error")), payment("error"))
	status = http.StatusBadGateway
	s.runsWith(status, payment("error-502"))
	s.refuses(core.ErrInterrupted, payment("error-502"))
}

func bareStatus(e *environment) {
	status := http.StatusServiceUnavailable
	s := e.serveEndpoint(endpoint{handler: func(t invocation) {
		t.Header().Set("Location", "/payments/1")
		t.bare(status)
	}})
	s.runsWith(status, payment("bare"))
	status = http.StatusAccepted
	s.replays(s.runsWith(status, payment("bare")), payment("bare"))
}

// deciding returns an endpoint whose handler decides, and answers with a status.
func deciding(d core.Decision, status *int) endpoint {
	return endpoint{handler: func(t invocation) {
		t.attempt.Decide(core.Uncertain) // the last decision counts
		t.attempt.Decide(d)
		t.WriteHeader(*status)
	}}
}

func decideStore(e *environment) {
	status := http.StatusInternalServerError
	s := e.serveEndpoint(deciding(core.StoreAnswer, &status))
	s.replays(s.runsWith(status, payment("store")), payment("store"))
}

func decideDrop(e *environment) {
	status := http.StatusCreated
	s := e.serveEndpoint(deciding(core.DropAnswer, &status))
	s.runsWith(status, payment("drop"))
	s.runsWith(status, payment("drop"))
}

// A failure frees the key, and a success is stored all the same.
func decideNoEffect(e *environment) {
	status := http.StatusInternalServerError
	s := e.serveEndpoint(endpoint{handler: func(t invocation) {
		t.attempt.Decide(core.NoEffect)
		t.WriteHeader(status)
	}})
	s.runsWith(status, payment("no-effect"))
	status = http.StatusCreated
	s.replays(s.runsWith(status, payment("no-effect")), payment("no-effect"))
}

// The client gets the handler's answer, but no copy does.
func decideUncertain(e *environment) {
	status := http.StatusGatewayTimeout
	s := e.serveEndpoint(deciding(core.Uncertain, &status))
	s.runsWith(status, payment("uncertain"))
	s.refuses(core.ErrInterrupted, payment("uncertain"))
	e.resolve("uncertain", core.Forget())
	s.runsWith(status, payment("uncertain"))

	point := deciding(core.Uncertain, &status)
	point.options = []core.Option{core.WithInterrupted(core.Rerun)}
	again := e.serveEndpoint(point)
	again.runsWith(status, payment("uncertain-again"))
	again.runsWith(status, payment("uncertain-again"))
}
