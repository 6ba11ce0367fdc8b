package conformance

import (
	"context"
	"strings"
	"time"

	"github.com/reqlock/reqlock/core"
)

// A routeClient is a client of a served route. It fails the test if an answer contains a key
// or a token.
type routeClient struct {
	*environment
	server
}

// send sends a request and reads the answer.
func (s *routeClient) send(ctx context.Context, r request) answer {
	s.Helper()
	ctx, cancel := context.WithTimeout(ctx, 3*patience) // a handler may need the patience itself
	defer cancel()
	got := s.server.send(ctx, r)
	s.checkSecrets(got)
	return got
}

// checkSecrets fails the test if an answer contains a key or a token.
func (s *routeClient) checkSecrets(got answer) {
	s.Helper()
	for _, keyPrefix := range []string{theKey, secondKey, foreignToken, s.ownTokens} {
		if strings.Contains(got.raw, keyPrefix) {
			s.Errorf("the answer contains a key or a token: %s", got.raw)
		}
	}
}

// wantReply sends a request. It fails the test unless the handler answers with the text.
func (s *routeClient) wantReply(r request, text string) {
	s.Helper()
	if got := s.send(s.Context(), r); !got.ok || got.text != text {
		s.Errorf("the answer is %+v, not %q", got, text)
	}
}

// wantRefusal sends a request that has to be refused with the outcome. Otherwise it ends the
// test, because later steps would wait for a lock in another state.
func (s *routeClient) wantRefusal(r request, want outcome) answer {
	s.Helper()
	got := s.send(s.Context(), r)
	switch {
	case got.ok || got.err != nil:
		s.Fatalf("not refused: %+v", got)
	case got.outcome != want:
		s.Fatalf("refused with %+v, not %+v: %s", got.outcome, want, got.raw)
	}
	return got
}

// says reports whether an answer contains a text, in the framework's form.
func says(got answer, text string) bool { return strings.Contains(got.raw, text) }

// defaultRetryAfter is core's default Retry-After.
const defaultRetryAfter = time.Second

// rowOf returns the framework's form of an error.
func (e *environment) rowOf(err error) outcome {
	e.Helper()
	outcome, ok := core.OutcomeOf(err)
	if !ok {
		e.Fatalf("%v is no outcome", err)
	}
	return e.f.row(outcome)
}
