package conformance

import (
	"context"
	"strings"
	"time"

	"github.com/reqlock/reqlock/core"
)

// A site is the client's side of a route that is served. It lets no answer pass
// that tells a key or a token.
type site struct {
	*env
	server
}

// send makes a request and reads the answer.
func (s *site) send(ctx context.Context, r request) answer {
	s.Helper()
	ctx, cancel := context.WithTimeout(ctx, 3*patience) // a handler may need the patience for itself
	defer cancel()
	got := s.server.send(ctx, r)
	s.checkSecrets(got)
	return got
}

// checkSecrets fails the test if an answer tells what no client may know.
func (s *site) checkSecrets(got answer) {
	s.Helper()
	for _, secret := range []string{theKey, secondKey, theirToken, s.ours} {
		if strings.Contains(got.raw, secret) {
			s.Errorf("the answer tells a key or a token: %s", got.raw)
		}
	}
}

// wantReply sends a request that must run, and be answered with the text.
func (s *site) wantReply(r request, text string) {
	s.Helper()
	if got := s.send(s.Context(), r); !got.ok || got.text != text {
		s.Errorf("the answer is %+v, not %q", got, text)
	}
}

// wantRefusal sends a request that must be answered as the verdict says, which
// is no success. Where it is not, the test ends: what follows would wait for a
// lock that is not what it seems.
func (s *site) wantRefusal(r request, want verdict) {
	s.Helper()
	got := s.send(s.Context(), r)
	switch {
	case got.ok || got.err != nil:
		s.Fatalf("not refused: %+v", got)
	case got.verdict != want:
		s.Fatalf("refused with %+v, not %+v: %s", got.verdict, want, got.raw)
	}
}

// says reports whether an answer holds a text. How it is wrapped is up to the
// framework.
func says(got answer, text string) bool { return strings.Contains(got.raw, text) }

// defaultRetryAfter is core's hint where a case sets no other.
const defaultRetryAfter = time.Second

// rowOf says an error in the framework's own terms.
func (e *env) rowOf(err error) verdict {
	e.Helper()
	outcome, ok := core.OutcomeOf(err)
	if !ok {
		e.Fatalf("%v is no outcome", err)
	}
	return e.f.row(outcome)
}
