package nethttplock_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/nethttplock"
)

// A token is shown to its client once, and never stored. A copy of the request makes no second token.
func ExampleIdempotent_shownOnce() {
	locks, stop := exampleLocker()
	defer stop()

	tokens := map[string]bool{} // a service stores a digest of each token instead
	create := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		token := rand.Text()
		tokens[token] = true
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintln(w, token)
	})
	mux := http.NewServeMux()
	mux.Handle("POST /tokens", nethttplock.Idempotent(locks,
		core.Join(nethttplock.BasicUser(), nethttplock.IdempotencyKey()), core.WithoutAnswer())(create))

	for range 2 {
		r := httptest.NewRequestWithContext(context.Background(), "POST", "/tokens", nil)
		r.SetBasicAuth("ada", "password")
		r.Header.Set("Idempotency-Key", "8e03978e")
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		fmt.Println(w.Code, "tokens:", len(tokens))
	}
	// Output:
	// 201 tokens: 1
	// 409 tokens: 1
}
