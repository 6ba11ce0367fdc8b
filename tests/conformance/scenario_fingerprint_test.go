package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"

	"github.com/reqlock/reqlock/core"
)

// fingerprintScenarios send another request with the same key.
func fingerprintScenarios() []testCase {
	return []testCase{
		{"another body, query or path with the same key", everywhere, mismatches},
		{"an empty body", everywhere, emptyBody},
		{"another body while the first request runs", everywhere, mismatchMeanwhile},
		{"fields that the application's fingerprint ignores", everywhere, ownFingerprint},
		{"a fingerprint function that fails", everywhere, noOwnFingerprint},
		{"no fingerprint", everywhere, noFingerprint},
		{"a multipart form that is resent with another boundary", everywhere, otherBoundary},
		{"another media type, and another charset", everywhere, otherMediaType},
		{"an outer middleware has consumed the body", everywhere, bodyGone},
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

func emptyBody(e *environment) {
	s := e.serveEndpoint(endpoint{})
	empty := payment("empty")
	empty.body = ""
	first := s.runsWith(http.StatusCreated, empty)
	s.replays(first, empty)
	s.refuses(core.ErrMismatch, payment("empty"))
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

// A fingerprint function refuses a request in the same way as a key function.
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

// A client that encodes its form again sends another boundary, and other bytes.
func otherBoundary(e *environment) {
	form := func(amount, file, content string) httpRequest {
		var body bytes.Buffer
		w := multipart.NewWriter(&body)
		_ = w.WriteField("amount", amount)
		part, _ := w.CreateFormFile("receipt", file)
		_, _ = part.Write([]byte(content))
		_ = w.Close()
		request := payment("form")
		request.body = body.String()
		request.header = http.Header{"Content-Type": {w.FormDataContentType()}}
		return request
	}
	s := e.serveEndpoint(endpoint{handler: func(t invocation) {
		file, header, err := t.r.FormFile("receipt")
		if err != nil {
			e.Errorf("the handler finds no file: %v", err)
			return
		}
		defer func() { _ = file.Close() }()
		content, err := io.ReadAll(file)
		t.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprint(t, t.r.PostFormValue("amount"), header.Filename, string(content), err)
	}})
	first := s.runsWith(http.StatusCreated, form("7", "r.txt", "paid"))
	if want := "7r.txtpaid<nil>"; first.body != want {
		e.Errorf("the handler reads %q, not %q", first.body, want)
	}
	s.replays(first, form("7", "r.txt", "paid"))
	for _, other := range []httpRequest{form("8", "r.txt", "paid"), form("7", "s.txt", "paid"), form("7", "r.txt", "open")} {
		s.refuses(core.ErrMismatch, other)
	}
}

// The same bytes differ in meaning between a merge patch and a JSON patch.
func otherMediaType(e *environment) {
	patch := func(contentType string) httpRequest {
		request := payment("patch")
		request.method, request.body = http.MethodPatch, "[]"
		request.header = http.Header{"Content-Type": {contentType}}
		return request
	}
	s := e.serveEndpoint(endpoint{})
	first := s.runsWith(http.StatusCreated, patch("application/merge-patch+json"))
	s.replays(first, patch("Application/Merge-Patch+JSON; charset=utf-8"))
	s.refuses(core.ErrMismatch, patch("application/json-patch+json"))
	s.refuses(core.ErrMismatch, patch(""))
}
