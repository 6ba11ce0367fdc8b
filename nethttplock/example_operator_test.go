package nethttplock_test

import (
	"context"
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
