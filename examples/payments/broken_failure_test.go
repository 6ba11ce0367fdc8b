package main

import (
	"crypto/rand"
	"net/http"
	"testing"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/nethttplock"
)

// TestWrongFailureIsReported changes what a failure of a payment means, in each way that the
// scenarios of failures detect.
func TestWrongFailureIsReported(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(*nethttpService, *core.Locker)
		marks  string
	}{
		{
			"each failure may have charged",
			func(s *nethttpService, _ *core.Locker) {
				account := s.account
				s.account = func(next http.Handler) http.Handler {
					return account(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						payment, _ := core.AttemptFromContext(r.Context())
						payment.Decide(core.Uncertain)
						next.ServeHTTP(w, r)
					}))
				}
			},
			"---------✗✓",
		},
		{
			"no failure has charged",
			func(s *nethttpService, locks *core.Locker) {
				s.once = nethttplock.Idempotent(locks, nethttplock.IdempotencyKey(), nethttplock.FreeOnFailure())
			},
			"---------✓✗",
		},
		{
			"a retry is another payment",
			func(s *nethttpService, locks *core.Locker) {
				s.once = nethttplock.Idempotent(locks, core.Of(func(*http.Request) string { return rand.Text() }))
			},
			"-----------✗",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			expectMarks(t, changedNetHTTP(test.change), test.marks)
		})
	}
}
