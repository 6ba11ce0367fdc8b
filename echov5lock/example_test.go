package echov5lock_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/labstack/echo/v5"
	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/echov5lock"
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
	transfer := func(c *echo.Context) error {
		if c.Param("id") == "42" {
			// While this transfer runs, the same client sends another transfer.
			again := send(e, "POST", "/accounts/42/transfer", "")
			fmt.Println("meanwhile:", again.Code, "Retry-After:", again.Header().Get("Retry-After"))
			other := send(e, "POST", "/accounts/43/transfer", "")
			fmt.Println("another account:", other.Code)
		}
		return c.NoContent(http.StatusCreated)
	}
	e.POST("/accounts/:id/transfer", transfer, echov5lock.Middleware(locks, echov5lock.Param("id").Named("account")))

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
		return func(c *echo.Context) error {
			c.Set("user", &User{ID: "ada"}) // from a session or a token
			return next(c)
		}
	}
	oneAtATime := echov5lock.Middleware(locks,
		echov5lock.GetAs("user", func(u *User) string { return u.ID }).Named("user"),
		core.WithWait(2*time.Second))

	e := echo.New()
	me := e.Group("/me", authenticate, oneAtATime)
	me.GET("", func(c *echo.Context) error {
		lease, _ := core.LeaseFromContext(c.Request().Context())
		return c.String(http.StatusOK, "under the lock "+lease.Key())
	})

	fmt.Println(send(e, "GET", "/me", "").Body)
	// Output:
	// under the lock user:ada
}

// The application's own error handler sees what happened, and leaves the rest to Echo.
func ExampleWriteError() {
	locks, stop := exampleLocker()
	defer stop()

	e := echo.New()
	byDefault := e.HTTPErrorHandler
	e.HTTPErrorHandler = func(c *echo.Context, err error) {
		if errors.Is(err, core.ErrNoKey) {
			err = echo.NewHTTPError(http.StatusUnauthorized, "the user is unknown")
		}
		byDefault(c, err)
	}
	e.GET("/", func(*echo.Context) error { return nil }, echov5lock.Middleware(locks, echov5lock.Header("X-User").Named("user")))

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
	pay := func(c *echo.Context) error {
		if balance < 7 {
			return echo.NewHTTPError(http.StatusPaymentRequired, "no funds")
		}
		balance -= 7
		return c.String(http.StatusCreated, fmt.Sprintf("%d left", balance))
	}
	authenticate := func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			c.Set("user_id", 7) // from a session or a token
			return next(c)
		}
	}
	e := echo.New()
	e.POST("/payments", pay, authenticate, echov5lock.Idempotent(locks,
		core.Join(echov5lock.Get("user_id"), echov5lock.IdempotencyKey())))

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
