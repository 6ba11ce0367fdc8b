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

// The provider has timed out, so it is unknown whether the payment was made. An operator finds
// the payment, and gives the copies their answer.
func ExampleEndpointKey() {
	locks, stop := exampleLocker()
	defer stop()
	mux := http.NewServeMux()
	pay := func(w http.ResponseWriter, r *http.Request) {
		attempt, _ := core.AttemptFromContext(r.Context())
		attempt.Decide(core.EndUnknown)
		w.WriteHeader(http.StatusGatewayTimeout)
	}
	mux.Handle("POST /payments", nethttplock.Idempotent(locks, nethttplock.IdempotencyKey())(http.HandlerFunc(pay)))
	ask := func() *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/payments", nil)
		r.Header.Set("Idempotency-Key", "8e03978e-40d5-43e8")
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		return w
	}
	fmt.Println("first:", ask().Code)
	fmt.Println("copy:", ask().Code)

	ctx := context.Background()
	key, err := core.EndpointKey("POST", "POST /payments", "8e03978e-40d5-43e8")
	if err != nil {
		fmt.Println(err)
	}
	record, err := locks.ReadRecord(ctx, key)
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println("the outcome is", record.State)
	answer, err := nethttplock.NewAnswer(http.StatusCreated, nil, []byte("payment 7"))
	if err != nil {
		fmt.Println(err)
	}
	if err := locks.Resolve(ctx, key, core.Answered(answer), record.Attempt); err != nil {
		fmt.Println(err)
	}

	replay := ask()
	fmt.Println("copy:", replay.Code, replay.Body)
	// Output:
	// first: 504
	// copy: 409
	// the outcome is unknown
	// copy: 201 payment 7
}

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
