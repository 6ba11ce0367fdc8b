package nethttplock_test

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/nethttplock"
)

// Reads of an account run beside each other, and a write has the account alone.
func ExampleIsRead() {
	locks, stop := exampleLocker()
	defer stop()
	defer func() { _ = locks.Close(context.Background()) }()

	mux := http.NewServeMux()
	account := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && r.URL.Query().Get("first") != "" {
			// While this read runs, the same client sends another one, and a write.
			fmt.Println("a read beside it:", send(mux, "GET", "/accounts/42", "").Code)
			fmt.Println("a write beside it:", send(mux, "POST", "/accounts/42", "").Code)
		}
	})
	lock := nethttplock.Middleware(locks,
		nethttplock.PathValue("id").Named("account").SharedWhen(nethttplock.IsRead), core.WithWait(500*time.Millisecond))
	mux.Handle("/accounts/{id}", lock(account))

	fmt.Println("a read:", send(mux, "GET", "/accounts/42?first=1", "").Code)
	fmt.Println("a write after it:", send(mux, "POST", "/accounts/42", "").Code)
	// Output:
	// a read beside it: 200
	// a write beside it: 409
	// a read: 200
	// a write after it: 200
}
