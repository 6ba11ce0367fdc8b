package idempotent

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/redis/go-redis/v9"
)

// copyingHandler returns a handler that stores the answer to a key in Redis, and copies it for each
// request that follows. It is what a replay costs at least.
func (s *testService) copyingHandler(client redis.UniversalClient) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		key := r.Header.Get(keyHeader)
		answer, err := client.Get(r.Context(), key).Bytes()
		if errors.Is(err, redis.Nil) {
			answer = s.payments.answer()
			err = client.Set(r.Context(), key, answer, time.Hour).Err()
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", answerType)
		w.WriteHeader(answerStatus)
		_, _ = w.Write(answer) //nolint:gosec // the answer is of this service
	})
}
