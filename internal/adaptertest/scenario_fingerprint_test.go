package adaptertest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"mime/multipart"
	"net/http"

	"github.com/reqlock/reqlock/core"
)

// fingerprintScenarios are about keys that come again with another request.
func fingerprintScenarios() []testCase {
	return []testCase{
		{"another body, query or path with the same key", everywhere, mismatches},
		{"an empty body", everywhere, emptyBody},
		{"another body while the first request runs", everywhere, mismatchMeanwhile},
		{"fields that do not count, by a fingerprint of the application", everywhere, ownFingerprint},
		{"a fingerprint that cannot be had", everywhere, noOwnFingerprint},
		{"no fingerprint", everywhere, noFingerprint},
		{"a form that is sent again with another boundary", everywhere, otherBoundary},
	}
}

func mismatches(e *env) {
	s := e.shop(endpoint{})
	request := payment("mismatch")
	request.path = paymentsPath + "?currency=EUR"
	first := s.runsWith(http.StatusCreated, request)
	for _, change := range []func(*sent){
		func(r *sent) { r.body = `{"amount":8}` },
		func(r *sent) { r.body = "" },
		func(r *sent) { r.path = paymentsPath },
		func(r *sent) { r.path = paymentsPath + "?currency=USD" },
		func(r *sent) { r.path = paymentsPath + "?currency=EUR&" },
	} {
		other := request
		change(&other)
		s.refuses(core.ErrMismatch, other)
	}
	request.chunked = true
	s.replays(first, request)
}

func emptyBody(e *env) {
	s := e.shop(endpoint{})
	empty := payment("empty")
	empty.body = ""
	first := s.runsWith(http.StatusCreated, empty)
	s.replays(first, empty)
	s.refuses(core.ErrMismatch, payment("empty"))
}

// The one that runs is not disturbed.
func mismatchMeanwhile(e *env) {
	var s *shop
	s = e.shop(endpoint{handler: func(t turn) {
		other := payment("meanwhile")
		other.body = "other"
		if answer := s.do(e.Context(), other); answer.status != http.StatusUnprocessableEntity {
			e.Errorf("meanwhile: %+v", answer)
		}
		t.WriteHeader(http.StatusCreated)
	}})
	s.replays(s.runsWith(http.StatusCreated, payment("meanwhile")), payment("meanwhile"))
}

// amountOf is a fingerprint of the one field that counts.
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

func ownFingerprint(e *env) {
	s := e.shop(endpoint{own: ownOptions{fingerprint: amountOf}})
	request := payment("own")
	first := s.runsWith(http.StatusCreated, request)
	request.body = `{"at":"noon", "amount":7}`
	s.replays(first, request)
	request.body = `{"amount":8}`
	s.refuses(core.ErrMismatch, request)
}

// It refuses a request as a key function does.
func noOwnFingerprint(e *env) {
	s := e.shop(endpoint{own: ownOptions{fingerprint: func(r *http.Request) ([]byte, error) {
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

func noFingerprint(e *env) {
	s := e.shop(endpoint{own: ownOptions{noFingerprint: true, maxBody: 1}})
	first := s.runsWith(http.StatusCreated, payment("none"))
	other := payment("none")
	other.body, other.path = "another", paymentsPath+"?another"
	s.replays(first, other)
}

// A client that makes its form anew sends another boundary, and other bytes.
func otherBoundary(e *env) {
	form := func(key string) sent {
		var body bytes.Buffer
		w := multipart.NewWriter(&body)
		_ = w.WriteField("amount", "7")
		_ = w.Close()
		return sent{
			keys: []string{key}, body: body.String(),
			header: http.Header{"Content-Type": {w.FormDataContentType()}},
		}
	}
	s := e.shop(endpoint{})
	again := form("form")
	first := s.runsWith(http.StatusCreated, again)
	s.refuses(core.ErrMismatch, form("form"))
	s.replays(first, again)

	byField := e.shop(endpoint{own: ownOptions{fingerprint: func(r *http.Request) ([]byte, error) {
		return []byte(r.PostFormValue("amount")), nil
	}}})
	byField.replays(byField.runsWith(http.StatusCreated, form("field")), form("field"))
}
