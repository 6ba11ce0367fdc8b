package echolock_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/labstack/echo/v4"
	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/echolock"
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
func send(e *echo.Echo, method, target, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), method, target, strings.NewReader(body)))
	return w
}

// A transfer is refused while another transfer from its account runs.
func Example() {
	locks, stop := exampleLocker()
	defer stop()

	e := echo.New()
	transfer := func(c echo.Context) error {
		if c.Param("id") == "42" {
			// While this transfer runs, the same client sends another transfer.
			again := send(e, "POST", "/accounts/42/transfer", "")
			fmt.Println("meanwhile:", again.Code, "Retry-After:", again.Header().Get("Retry-After"))
			other := send(e, "POST", "/accounts/43/transfer", "")
			fmt.Println("another account:", other.Code)
		}
		return c.NoContent(http.StatusCreated)
	}
	e.POST("/accounts/:id/transfer", transfer, echolock.Middleware(locks, echolock.Param("id").Named("account")))

	fmt.Println("first:", send(e, "POST", "/accounts/42/transfer", "").Code)
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
	authenticate := func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			c.Set("user", &User{ID: "ada"}) // from a session or a token
			return next(c)
		}
	}
	oneAtATime := echolock.Middleware(locks,
		echolock.GetAs("user", func(u *User) string { return u.ID }).Named("user"),
		core.WithWait(2*time.Second))

	e := echo.New()
	me := e.Group("/me", authenticate, oneAtATime)
	me.GET("", func(c echo.Context) error {
		lease, _ := core.LeaseFromContext(c.Request().Context())
		return c.String(http.StatusOK, "under the lock "+lease.Key())
	})

	fmt.Println(send(e, "GET", "/me", "").Body)
	// Output:
	// under the lock user:ada
}

// GET requests run without the lock; all others have it. Other middlewares of Echo have a Skipper.
func ExampleMiddleware_when() {
	locks, stop := exampleLocker()
	defer stop()

	isNotGet := func(c echo.Context) bool { return c.Request().Method != http.MethodGet }
	e := echo.New()
	e.Any("/report", func(c echo.Context) error {
		_, locked := core.LeaseFromContext(c.Request().Context())
		fmt.Println(c.Request().Method, "locked:", locked)
		return nil
	}, echolock.Middleware(locks, echolock.Literal("report").When(isNotGet), core.WithWait(time.Second)))

	send(e, "GET", "/report", "")
	send(e, "POST", "/report", "")
	// Output:
	// GET locked: false
	// POST locked: true
}

// The handler still reads the whole body.
func ExampleJSONField() {
	locks, stop := exampleLocker()
	defer stop()

	e := echo.New()
	e.POST("/payments", func(c echo.Context) error {
		body, err := io.ReadAll(c.Request().Body)
		if err != nil {
			return err
		}
		return c.Blob(http.StatusOK, "application/json", body)
	}, echolock.Middleware(locks, echolock.JSONField("account.id").Named("account")))

	fmt.Println(send(e, "POST", "/payments", `{"account":{"id":42},"amount":7}`).Body)
	fmt.Println(send(e, "POST", "/payments", `{"amount":7}`).Code)
	fmt.Println(send(e, "POST", "/payments", `{"account":{"id":42,"id":43}}`).Code)
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

	e := echo.New()
	submit := func(user, key string) int {
		r := httptest.NewRequestWithContext(context.Background(), "POST", "/payments/"+user, nil)
		r.Header.Set("Idempotency-Key", key)
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		return w.Code
	}
	authenticate := func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			c.Set("user_id", c.Param("user")) // from a session or a token
			return next(c)
		}
	}
	oneAtATime := echolock.Middleware(locks, core.Join(echolock.Get("user_id"), echolock.IdempotencyKey()).Named("payment"))
	e.POST("/payments/:user", func(c echo.Context) error {
		if c.Param("user") == "ada" {
			fmt.Println("ada again:", submit("ada", `"8e03978e"`)) // the same key, quoted
			fmt.Println("grace:", submit("grace", "8e03978e"))
		}
		return c.NoContent(http.StatusCreated)
	}, authenticate, oneAtATime)

	fmt.Println("ada:", submit("ada", "8e03978e"))
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

	e := echo.New()
	e.POST("/transfers", func(echo.Context) error {
		for _, account := range []string{"account:a", "account:b", "account:c"} {
			_, err := locks.TryLock(context.Background(), account)
			fmt.Println(account, "is taken:", err != nil)
		}
		return nil
	}, echolock.Middleware(locks, core.All(echolock.JSONField("from"), echolock.JSONField("to")).Named("account"), core.WithWait(2*time.Second)))

	send(e, "POST", "/transfers", `{"from":"b","to":"a"}`)
	// Output:
	// account:a is taken: true
	// account:b is taken: true
	// account:c is taken: false
}

// The application's own error handler sees what happened, and leaves the rest
// to Echo.
func ExampleWriteError() {
	locks, stop := exampleLocker()
	defer stop()

	e := echo.New()
	e.HTTPErrorHandler = func(err error, c echo.Context) {
		if errors.Is(err, core.ErrNoKey) {
			_ = c.String(http.StatusUnauthorized, "the user is unknown")
			return
		}
		e.DefaultHTTPErrorHandler(err, c)
	}
	e.GET("/", func(echo.Context) error { return nil }, echolock.Middleware(locks, echolock.Header("X-User").Named("user")))

	answer := send(e, "GET", "/", "")
	fmt.Println(answer.Code, answer.Body)
	// Output:
	// 401 the user is unknown
}

// An error handler answers for one middleware alone.
func ExampleWithErrorHandler() {
	locks, stop := exampleLocker()
	defer stop()

	refused := func(c echo.Context, err error) error {
		if refusal, _ := core.RefusalOf(err); refusal.Code == "no_key" {
			return echo.NewHTTPError(http.StatusUnauthorized, "the user is unknown")
		}
		return echolock.WriteError(c, err)
	}
	e := echo.New()
	e.GET("/", func(echo.Context) error { return nil },
		echolock.Middleware(locks, echolock.Header("X-User").Named("user"), echolock.WithErrorHandler(refused)))

	answer := send(e, "GET", "/", "")
	fmt.Print(answer.Code, " ", answer.Body)
	// Output:
	// 401 {"message":"the user is unknown"}
}

// A payment that is sent again gets the answer of the first one, also where that is
// an error which the handler has returned.
func ExampleIdempotent() {
	locks, stop := exampleLocker()
	defer stop()

	balance := 10
	pay := func(c echo.Context) error {
		if balance < 7 {
			return echo.NewHTTPError(http.StatusPaymentRequired, "no funds")
		}
		balance -= 7
		return c.String(http.StatusCreated, fmt.Sprintf("%d left", balance))
	}
	authenticate := func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			c.Set("user_id", 7) // from a session or a token
			return next(c)
		}
	}
	e := echo.New()
	e.POST("/payments", pay, authenticate, echolock.Idempotent(locks,
		core.Join(echolock.Get("user_id"), echolock.IdempotencyKey())))

	submit := func(key string) {
		r := httptest.NewRequestWithContext(context.Background(), "POST", "/payments", nil)
		r.Header.Set("Idempotency-Key", key)
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		body := strings.TrimSpace(w.Body.String())
		fmt.Printf("%d %s, replayed: %v\n", w.Code, body, w.Header().Get("Idempotent-Replayed") == "true")
	}
	submit("8e03978e")
	submit("8e03978e")
	submit("40d543e8")
	submit("40d543e8")
	// Output:
	// 201 3 left, replayed: false
	// 201 3 left, replayed: true
	// 402 {"message":"no funds"}, replayed: false
	// 402 {"message":"no funds"}, replayed: true
}
