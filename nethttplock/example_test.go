package nethttplock_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/nethttplock"
)

// exampleLocker stands for core.New with the client of your Redis.
func exampleLocker() (locks *core.Locker, stop func()) {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	return core.Must(core.New(rdb, core.WithCommandTimeout(2*time.Second))), func() {
		_ = rdb.Close()
		server.Close()
	}
}

// send makes a request and returns the answer.
func send(h http.Handler, method, target, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), method, target, strings.NewReader(body)))
	return w
}

// A transfer is refused while another transfer from its account runs.
func Example() {
	locks, stop := exampleLocker()
	defer stop()

	mux := http.NewServeMux()
	transfer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("id") == "42" {
			// While this transfer runs, the same client sends another transfer.
			again := send(mux, "POST", "/accounts/42/transfer", "")
			fmt.Println("meanwhile:", again.Code, "Retry-After:", again.Header().Get("Retry-After"))
			other := send(mux, "POST", "/accounts/43/transfer", "")
			fmt.Println("another account:", other.Code)
		}
		w.WriteHeader(http.StatusCreated)
	})
	mux.Handle("POST /accounts/{id}/transfer", nethttplock.Middleware(locks,
		nethttplock.PathValue("id").Named("account"))(transfer))

	fmt.Println("first:", send(mux, "POST", "/accounts/42/transfer", "").Code)
	// Output:
	// meanwhile: 409 Retry-After: 1
	// another account: 201
	// first: 201
}

// The requests of one user wait for each other, for up to two seconds. The lock
// stands behind the authentication, which finds the user.
func ExampleMiddleware_perUser() {
	locks, stop := exampleLocker()
	defer stop()

	type User struct{ ID string }
	type userKey struct{}
	authenticate := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			user := &User{ID: "ada"} // from a session or a token
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), userKey{}, user)))
		})
	}
	oneAtATime := nethttplock.Middleware(locks,
		nethttplock.ContextValueAs(userKey{}, func(u *User) string { return u.ID }).Named("user"),
		core.WithWait(2*time.Second))

	h := authenticate(oneAtATime(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lease, _ := core.LeaseFromContext(r.Context())
		_, _ = fmt.Fprintln(w, "under the lock", lease.Key())
	})))

	fmt.Print(send(h, "GET", "/me", "").Body)
	// Output:
	// under the lock user:ada
}

// The handler still reads the whole body.
func ExampleJSONField() {
	locks, stop := exampleLocker()
	defer stop()

	pay := nethttplock.Middleware(locks, nethttplock.JSONField("account.id").Named("account"))(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			_, _ = fmt.Fprintf(w, "%s", body)
		}))

	fmt.Println(send(pay, "POST", "/payments", `{"account":{"id":42},"amount":7}`).Body)
	fmt.Println(send(pay, "POST", "/payments", `{"amount":7}`).Code)
	fmt.Println(send(pay, "POST", "/payments", `{"account":{"id":42,"id":43}}`).Code)
	// Output:
	// {"account":{"id":42},"amount":7}
	// 400
	// 400
}

// Two copies of a payment do not run at the same time. The key contains the user, so
// that users with the same Idempotency-Key do not block each other.
func ExampleIdempotencyKey() {
	locks, stop := exampleLocker()
	defer stop()

	submit := func(h http.Handler, user, key string) int {
		r := httptest.NewRequestWithContext(context.Background(), "POST", "/payments", nil)
		r.SetBasicAuth(user, "password")
		r.Header.Set("Idempotency-Key", key)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	var pay http.Handler
	pay = nethttplock.Middleware(locks, core.Join(nethttplock.BasicUser(), nethttplock.IdempotencyKey()).Named("payment"))(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if user, _, _ := r.BasicAuth(); user == "ada" {
				fmt.Println("ada again:", submit(pay, "ada", `"8e03978e"`)) // the same key, quoted
				fmt.Println("grace:", submit(pay, "grace", "8e03978e"))
			}
			w.WriteHeader(http.StatusCreated)
		}))

	fmt.Println("ada:", submit(pay, "ada", "8e03978e"))
	// Output:
	// ada again: 409
	// grace: 201
	// ada: 201
}

// A transfer locks both of its accounts. A transfer from a to b and a transfer from b
// to a exclude each other, and do not deadlock.
func ExampleMiddleware_severalKeys() {
	locks, stop := exampleLocker()
	defer stop()

	transfer := nethttplock.Middleware(locks, core.All(nethttplock.JSONField("from"), nethttplock.JSONField("to")).Named("account"), core.WithWait(2*time.Second))(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		for _, account := range []string{"account:a", "account:b", "account:c"} {
			_, err := locks.TryLock(context.Background(), account)
			fmt.Println(account, "is taken:", err != nil)
		}
	}))

	send(transfer, "POST", "/transfers", `{"from":"b","to":"a"}`)
	// Output:
	// account:a is taken: true
	// account:b is taken: true
	// account:c is taken: false
}

// An error handler writes some answers, and uses the default for the others.
func ExampleWithErrorHandler() {
	locks, stop := exampleLocker()
	defer stop()

	refused := func(w http.ResponseWriter, r *http.Request, err error) {
		refusal, _ := core.RefusalOf(err)
		if refusal.Code != "no_key" {
			nethttplock.WriteError(w, r, err)
			return
		}
		http.Error(w, "the user is unknown", http.StatusUnauthorized)
	}
	h := nethttplock.Middleware(locks, nethttplock.BasicUser().Named("user"), nethttplock.WithErrorHandler(refused))(
		http.NotFoundHandler())

	answer := send(h, "GET", "/", "")
	fmt.Print(answer.Code, " ", answer.Body)
	// Output:
	// 401 the user is unknown
}

// An error handler writes each refusal in the form of the program's other errors.
func ExampleWithErrorHandler_envelope() {
	locks, stop := exampleLocker()
	defer stop()

	refused := func(w http.ResponseWriter, _ *http.Request, err error) {
		refusal, _ := core.RefusalOf(err)
		if wait := refusal.RetryAfter; wait > 0 {
			w.Header().Set("Retry-After", fmt.Sprint(int((wait+time.Second-1)/time.Second))) // rounded up
		}
		w.WriteHeader(refusal.HTTP)
		_ = json.NewEncoder(w).Encode(map[string]string{"error": refusal.Code, "message": refusal.Detail})
	}
	pay := nethttplock.Idempotent(locks, nethttplock.IdempotencyKey(), nethttplock.WithErrorHandler(refused))

	answer := send(pay(http.NotFoundHandler()), "POST", "/payments", "")
	fmt.Print(answer.Code, " ", answer.Body)
	// Output:
	// 400 {"error":"no_key","message":"The request lacks the header \"Idempotency-Key\", by which the server recognizes a retry."}
}

// GET requests run without the lock; all others have it.
func ExampleMiddleware_some() {
	locks, stop := exampleLocker()
	defer stop()

	changes := func(r *http.Request) bool { return r.Method != http.MethodGet }
	h := nethttplock.Middleware(locks, nethttplock.Literal("report").When(changes))(
		http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, locked := core.LeaseFromContext(r.Context())
			fmt.Println(r.Method, "locked:", locked)
		}))

	send(h, "GET", "/report", "")
	send(h, "POST", "/report", "")
	// Output:
	// GET locked: false
	// POST locked: true
}

// A payment that is sent twice is made once. The copy gets the first answer.
func ExampleIdempotent() {
	locks, stop := exampleLocker()
	defer stop()

	payments := 0
	pay := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		payments++
		w.Header().Set("Location", fmt.Sprintf("/payments/%d", payments))
		w.WriteHeader(http.StatusCreated)
	})
	mux := http.NewServeMux()
	mux.Handle("POST /payments", nethttplock.Idempotent(locks,
		core.Join(nethttplock.BasicUser(), nethttplock.IdempotencyKey()))(pay))

	submit := func(user, body string) {
		r := httptest.NewRequestWithContext(context.Background(), "POST", "/payments", strings.NewReader(body))
		r.SetBasicAuth(user, "password")
		r.Header.Set("Idempotency-Key", "8e03978e")
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		replayed := w.Header().Get("Idempotent-Replayed") == "true"
		fmt.Printf("%s, %s: %d %q, replayed: %v\n", user, body, w.Code, w.Header().Get("Location"), replayed)
	}
	submit("ada", "7 EUR")
	submit("ada", "7 EUR")
	submit("ada", "8 EUR") // the same key for another payment
	submit("grace", "7 EUR")
	// Output:
	// ada, 7 EUR: 201 "/payments/1", replayed: false
	// ada, 7 EUR: 201 "/payments/1", replayed: true
	// ada, 8 EUR: 422 "", replayed: false
	// grace, 7 EUR: 201 "/payments/2", replayed: false
}

// A handler that may have charged before it failed leaves the outcome unknown, and its
// copies are refused. WithUnknown tells apart the failures after which nothing was
// charged: here the database has refused the order before the charge.
func ExampleWithUnknown() {
	locks, stop := exampleLocker()
	defer stop()

	const noStock = http.StatusInsufficientStorage
	charges := 0
	order := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Query().Get("item") {
		case "sold-out":
			w.WriteHeader(noStock)
		case "slow":
			charges++
			w.WriteHeader(http.StatusGatewayTimeout) // the payment provider did not answer in time
		}
	})
	mux := http.NewServeMux()
	mux.Handle("POST /orders", nethttplock.Idempotent(locks, nethttplock.IdempotencyKey(),
		core.WithUnknown(func(f core.Failure) bool { return f.Panic || f.Status >= 500 && f.Status != noStock }))(order))

	for _, item := range []string{"slow", "slow", "sold-out", "sold-out"} {
		r := httptest.NewRequestWithContext(context.Background(), "POST", "/orders?item="+item, nil)
		r.Header.Set("Idempotency-Key", item)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		fmt.Printf("%s: %d, charges: %d\n", item, w.Code, charges)
	}
	// Output:
	// slow: 504, charges: 1
	// slow: 409, charges: 1
	// sold-out: 507, charges: 1
	// sold-out: 507, charges: 1
}

// A handler answers 202, and its work goes on under the lock. Until the work ends, other requests with the
// key are refused.
func Example_detach() {
	locks, stop := exampleLocker()
	defer stop()

	finish, done := make(chan struct{}), make(chan struct{})
	export := func(ctx context.Context) {
		defer close(done)
		select {
		case <-finish:
			fmt.Println("exported, still locked:", ctx.Err() == nil)
		case <-ctx.Done(): // the lock is lost, was held for ten minutes, or the process ends
		}
	}
	handler := nethttplock.Middleware(locks, nethttplock.PathValue("id").Named("export"), core.WithMaxHold(10*time.Minute))(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			work, err := core.Detach(r.Context())
			if err != nil {
				nethttplock.WriteError(w, r, err)
				return
			}
			go func() {
				defer func() { _ = work.Release(context.Background()) }()
				export(work.Context())
			}()
			w.WriteHeader(http.StatusAccepted)
		}))
	mux := http.NewServeMux()
	mux.Handle("POST /tenants/{id}/export", handler)

	fmt.Println(send(mux, "POST", "/tenants/7/export", "").Code)
	fmt.Println(send(mux, "POST", "/tenants/7/export", "").Code)
	close(finish)
	<-done
	_ = locks.Close(context.Background()) // waits for the release
	// Output:
	// 202
	// 409
	// exported, still locked: true
}
