package main

import (
	"context"
	"net/http"
	"time"
)

// slowest bounds what a request may ask for.
const slowest = 30 * time.Second

// slow lets a request take as long as its query says, as in ?slow=3s, so that
// a person with two terminals can see a lock at work. It belongs to the
// demonstration, not to a service.
func slow(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query().Get("slow")
		if query == "" {
			next.ServeHTTP(w, r)
			return
		}
		pause, err := time.ParseDuration(query)
		if err != nil || pause < 0 || pause > slowest {
			reply(w, http.StatusBadRequest, map[string]any{"error": "slow is a duration of at most 30s, such as 3s"})
			return
		}
		select {
		case <-time.After(pause):
			next.ServeHTTP(w, r)
		case <-r.Context().Done():
			refuse(w, context.Cause(r.Context()))
		}
	})
}
