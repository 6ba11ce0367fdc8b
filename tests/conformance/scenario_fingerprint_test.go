package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/reqlock/reqlock/core"
)

// fingerprintScenarios send another request with the same key.
func fingerprintScenarios() []testCase {
	return []testCase{
		{"another body, query or path with the same key", everywhere, mismatches},
		{"another body while the first request runs", everywhere, mismatchMeanwhile},
		{"fields that the application's fingerprint ignores", everywhere, ownFingerprint},
		{"a fingerprint function that fails", everywhere, noOwnFingerprint},
		{"no fingerprint", everywhere, noFingerprint},
		{"an outer middleware has consumed the body", earlyBodies, bodyGone},
	}
}

func mismatches(e *environment) {
	s := e.serveEndpoint(endpoint{})
	request := payment("mismatch")
	request.path = paymentsPath + "?currency=EUR"
	first := s.runsWith(http.StatusCreated, request)
	for _, change := range []func(*httpRequest){
		func(r *httpRequest) { r.body = `{"amount":8}` },
		func(r *httpRequest) { r.body = "" },
		func(r *httpRequest) { r.path = paymentsPath },
		func(r *httpRequest) { r.path = paymentsPath + "?currency=USD" },
		func(r *httpRequest) { r.path = paymentsPath + "?currency=EUR&" },
	} {
		other := request
		change(&other)
		s.refuses(core.ErrMismatch, other)
	}
	request.chunked = true
	s.replays(first, request)
}

// The running request is not disturbed.
func mismatchMeanwhile(e *environment) {
	var s *service
	s = e.serveEndpoint(endpoint{handler: func(t invocation) {
		other := payment("meanwhile")
		other.body = "other"
		if answer := s.do(e.Context(), other); answer.status != http.StatusUnprocessableEntity {
			e.Errorf("meanwhile: %+v", answer)
		}
		t.WriteHeader(http.StatusCreated)
	}})
	s.replays(s.runsWith(http.StatusCreated, payment("meanwhile")), payment("meanwhile"))
}

// amountOf returns a fingerprint of one field.
func amountOf(r *http.Request) ([]byte, error) {
	var body struct {
		Amount *int
		At     string
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return nil, err
	}
	if body.Amount == nil {
		return nil, forbidden{}
	}
	return fmt.Append(nil, *body.Amount), nil
}

func ownFingerprint(e *environment) {
	s := e.serveEndpoint(endpoint{own: ownOptions{fingerprint: amountOf}})
	request := payment("own")
	first := s.runsWith(http.StatusCreated, request)
	request.body = `{"at":"noon", "amount":7}`
	s.replays(first, request)
	request.body = `{"amount":8}`
	s.refuses(core.ErrMismatch, request)
}

// A fingerprint function refuses a request in the same way as the function of a key.
func noOwnFingerprint(e *environment) {
	s := e.serveEndpoint(endpoint{own: ownOptions{fingerprint: func(r *http.Request) ([]byte, error) {
		switch r.Header.Get("X-Fault") {
		case "own":
			return nil, forbidden{}
		case "key":
			return nil, core.ErrInvalidKey
		case "skip":
			return nil, core.ErrSkip
		default:
			return nil, errors.New("broken")
		}
	}}})
	request := payment("no-fingerprint")
	for fault, status := range map[string]int{"own": 403, "key": 400, "": 500} {
		request.header = http.Header{"X-Fault": {fault}}
		if answer := s.do(e.Context(), request); answer.status != status {
			e.Errorf("%q: %+v", fault, answer)
		}
	}
	if n := s.runs.Load(); n != 0 {
		e.Errorf("the handler has run %d times", n)
	}
	request.header = http.Header{"X-Fault": {"skip"}}
	s.runsWith(http.StatusCreated, request)
	s.runsWith(http.StatusCreated, request)
}

func noFingerprint(e *environment) {
	s := e.serveEndpoint(endpoint{own: ownOptions{noFingerprint: true, maxBody: 1}})
	first := s.runsWith(http.StatusCreated, payment("none"))
	other := payment("none")
	other.body, other.path = "another", paymentsPath+"?another"
	s.replays(first, other)
}
