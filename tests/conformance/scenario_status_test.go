package conformance

import (
	"net/http"
	"strconv"

	"github.com/reqlock/reqlock/core"
)

// statusScenarios are about which answers are kept.
func statusScenarios() []testCase {
	return []testCase{
		{"2xx, 3xx and most of 4xx are kept", everywhere, keptStatuses},
		{"5xx, and refusals that can change, free the key", everywhere, freeingStatuses},
		{"statuses of the application's choice", everywhere, ownStatuses},
		{"an error in the framework's own way", everywhere, ownErrors},
		{"a status alone, in the framework's own way", everywhere, bareStatus},
		{"the handler decides: store", everywhere, decideStore},
		{"the handler decides: drop", everywhere, decideDrop},
		{"the handler decides: uncertain", everywhere, decideUncertain},
	}
}

// answering is an endpoint whose handler answers with a status.
func answering(status *int) endpoint {
	return endpoint{handler: func(t turn) {
		t.WriteHeader(*status)
		_, _ = t.Write([]byte("answered"))
	}}
}

func keptStatuses(e *env) {
	var status int
	s := e.shop(answering(&status))
	for _, status = range []int{200, 201, 202, 299, 301, 303, 307, 400, 402, 404, 405, 410, 412, 413, 422, 428, 451} {
		request := payment(strconv.Itoa(status))
		s.replays(s.runsWith(status, request), request)
	}
}

func freeingStatuses(e *env) {
	var status int
	s := e.shop(answering(&status))
	for _, status = range []int{401, 403, 408, 409, 423, 425, 429, 499, 500, 501, 502, 503, 504, 599} {
		s.runsWith(status, payment("free"))
	}
	status = http.StatusCreated
	s.replays(s.runsWith(status, payment("free")), payment("free"))
}

func ownStatuses(e *env) {
	var status int
	point := answering(&status)
	point.own.stored = func(status int) bool { return status == http.StatusTeapot || status/100 == 5 }
	s := e.shop(point)
	status = http.StatusCreated
	s.runsWith(status, payment("own"))
	status = http.StatusServiceUnavailable
	s.replays(s.runsWith(status, payment("own")), payment("own"))
}

// What the framework makes of an error is kept by its status, as any answer.
func ownErrors(e *env) {
	status := http.StatusBadGateway
	s := e.shop(endpoint{handler: func(t turn) { t.fail(status) }})
	s.runsWith(status, payment("error"))
	status = http.StatusUnprocessableEntity
	s.replays(s.runsWith(status, payment("error")), payment("error"))
}

func bareStatus(e *env) {
	status := http.StatusServiceUnavailable
	s := e.shop(endpoint{handler: func(t turn) {
		t.Header().Set("Location", "/payments/1")
		t.bare(status)
	}})
	s.runsWith(status, payment("bare"))
	status = http.StatusAccepted
	s.replays(s.runsWith(status, payment("bare")), payment("bare"))
}

// deciding is an endpoint whose handler decides, and answers with a status.
func deciding(d core.Decision, status *int) endpoint {
	return endpoint{handler: func(t turn) {
		t.attempt.Decide(core.Uncertain) // the last decision counts
		t.attempt.Decide(d)
		t.WriteHeader(*status)
	}}
}

func decideStore(e *env) {
	status := http.StatusInternalServerError
	s := e.shop(deciding(core.StoreAnswer, &status))
	s.replays(s.runsWith(status, payment("store")), payment("store"))
}

func decideDrop(e *env) {
	status := http.StatusCreated
	s := e.shop(deciding(core.DropAnswer, &status))
	s.runsWith(status, payment("drop"))
	s.runsWith(status, payment("drop"))
}

// The answer is the handler's, but nobody gets it again.
func decideUncertain(e *env) {
	status := http.StatusGatewayTimeout
	s := e.shop(deciding(core.Uncertain, &status))
	s.runsWith(status, payment("uncertain"))
	s.refuses(core.ErrInterrupted, payment("uncertain"))
	if err := e.locks.Resolve(e.Context(), endpointKey("uncertain")); err != nil {
		e.Errorf("Resolve: %v", err)
	}
	s.runsWith(status, payment("uncertain"))

	point := deciding(core.Uncertain, &status)
	point.options = []core.Option{core.WithInterrupted(core.Rerun)}
	again := e.shop(point)
	again.runsWith(status, payment("uncertain-again"))
	again.runsWith(status, payment("uncertain-again"))
}

// endpointKey is the key of a payment, as an operator needs it.
func endpointKey(name string) string {
	joined := core.Join(
		core.Of(func(struct{}) string { return "ada" }),
		core.Of(func(struct{}) string { return secret + name }),
	)
	k, _ := joined(struct{}{})
	return core.EndpointKey(http.MethodPost, paymentsPath, k)
}
