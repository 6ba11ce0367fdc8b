package ginlock_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/ginlock"
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

// request makes a request and returns the answer.
func request(h http.Handler, method, target, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), method, target, strings.NewReader(body)))
	return w
}

// A transfer is refused while another transfer from its account runs.
func Example() {
	locks, stop := exampleLocker()
	defer stop()

	r := gin.New()
	transfer := func(c *gin.Context) {
		if c.Param("id") == "42" {
			// While this transfer runs, the same client sends another transfer.
			again := request(r, "POST", "/accounts/42/transfer", "")
			fmt.Println("meanwhile:", again.Code, "Retry-After:", again.Header().Get("Retry-After"))
			other := request(r, "POST", "/accounts/43/transfer", "")
			fmt.Println("another account:", other.Code)
		}
		c.Status(http.StatusCreated)
	}
	r.POST("/accounts/:id/transfer", ginlock.Middleware(locks, ginlock.Param("id").Named("account")), transfer)

	fmt.Println("first:", request(r, "POST", "/accounts/42/transfer", "").Code)
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
	authenticate := func(c *gin.Context) {
		c.Set("user", &User{ID: "ada"}) // from a session or a token
	}
	r := gin.New()
	me := r.Group("/me", authenticate, ginlock.Middleware(locks,
		ginlock.GetAs("user", func(u *User) string { return u.ID }).Named("user"),
		core.WithWait(2*time.Second)))
	me.GET("", func(c *gin.Context) {
		lease, _ := core.LeaseFromContext(c)
		c.String(http.StatusOK, "under the lock %s", lease.Key())
	})

	fmt.Println(request(r, "GET", "/me", "").Body)
	// Output:
	// under the lock user:ada
}

// A lock of the whole engine leaves unknown routes alone.
func ExampleMiddleware_engine() {
	locks, stop := exampleLocker()
	defer stop()

	isRoute := func(c *gin.Context) bool { return c.FullPath() != "" }
	r := gin.New()
	r.Use(ginlock.Middleware(locks, ginlock.Header("X-Tenant").Named("tenant").When(isRoute)))
	r.GET("/reports", func(c *gin.Context) { c.String(http.StatusOK, "report") })

	fmt.Println(request(r, "GET", "/reports", "").Code, request(r, "GET", "/unknown", "").Code)
	// Output:
	// 400 404
}

// The handler still binds the whole body.
func ExampleJSONField() {
	locks, stop := exampleLocker()
	defer stop()

	r := gin.New()
	r.POST("/payments", ginlock.Middleware(locks, ginlock.JSONField("account.id").Named("account")), func(c *gin.Context) {
		var payment struct {
			Account struct{ ID int }
			Amount  int
		}
		if err := c.ShouldBindJSON(&payment); err != nil {
			_ = c.AbortWithError(http.StatusBadRequest, err)
			return
		}
		c.JSON(http.StatusOK, payment)
	})

	fmt.Println(request(r, "POST", "/payments", `{"account":{"id":42},"amount":7}`).Body)
	fmt.Println(request(r, "POST", "/payments", `{"amount":7}`).Code)
	fmt.Println(request(r, "POST", "/payments", `{"account":{"id":42,"id":43}}`).Code)
	// Output:
	// {"Account":{"ID":42},"Amount":7}
	// 400
	// 400
}

// Two copies of a payment do not run at the same time. The key contains the user, so
// that users with the same Idempotency-Key do not block each other.
func ExampleIdempotencyKey() {
	locks, stop := exampleLocker()
	defer stop()

	r := gin.New()
	submit := func(user, key string) int {
		sent := httptest.NewRequestWithContext(context.Background(), "POST", "/payments/"+user, nil)
		sent.Header.Set("Idempotency-Key", key)
		w := httptest.NewRecorder()
		r.ServeHTTP(w, sent)
		return w.Code
	}
	authenticate := func(c *gin.Context) { c.Set("user_id", c.Param("user")) } // from a session or a token
	oneAtATime := ginlock.Middleware(locks, core.Join(ginlock.Get("user_id"), ginlock.IdempotencyKey()).Named("payment"))
	r.POST("/payments/:user", authenticate, oneAtATime, func(c *gin.Context) {
		if c.Param("user") == "ada" {
			fmt.Println("ada again:", submit("ada", `"8e03978e"`)) // the same key, quoted
			fmt.Println("grace:", submit("grace", "8e03978e"))
		}
		c.Status(http.StatusCreated)
	})

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

	r := gin.New()
	r.POST("/transfers", ginlock.Middleware(locks, core.All(ginlock.JSONField("from"), ginlock.JSONField("to")).Named("account"), core.WithWait(2*time.Second)), func(*gin.Context) {
		for _, account := range []string{"account:a", "account:b", "account:c"} {
			_, err := locks.TryLock(context.Background(), account)
			fmt.Println(account, "is taken:", err != nil)
		}
	})

	request(r, "POST", "/transfers", `{"from":"b","to":"a"}`)
	// Output:
	// account:a is taken: true
	// account:b is taken: true
	// account:c is taken: false
}

// An error handler writes some answers, and uses the default for the others.
func ExampleWithErrorHandler() {
	locks, stop := exampleLocker()
	defer stop()

	refused := func(c *gin.Context, err error) {
		refusal, _ := core.RefusalOf(err)
		if refusal.Code != "no_key" {
			ginlock.WriteError(c, err)
			return
		}
		c.JSON(http.StatusUnauthorized, gin.H{"error": "the user is unknown"})
	}
	r := gin.New()
	r.GET("/me", ginlock.Middleware(locks, ginlock.Get("user").Named("user"), ginlock.WithErrorHandler(refused)),
		func(*gin.Context) { fmt.Println("this does not run") })

	answer := request(r, "GET", "/me", "")
	fmt.Println(answer.Code, answer.Body)
	// Output:
	// 401 {"error":"the user is unknown"}
}

// A middleware before the lock renders all errors of the application; the
// error handler leaves it the body.
func ExampleWithErrorHandler_renderedOutside() {
	locks, stop := exampleLocker()
	defer stop()

	r := gin.New()
	r.Use(func(c *gin.Context) {
		c.Next()
		if err := c.Errors.Last(); err != nil && !c.Writer.Written() {
			refusal, _ := core.RefusalOf(err)
			c.JSON(-1, gin.H{"error": refusal.Code}) // with the status that is set
		}
	})
	statusOnly := ginlock.WithErrorHandler(func(c *gin.Context, err error) {
		refusal, _ := core.RefusalOf(err)
		c.Status(refusal.HTTP)
	})
	r.GET("/me", ginlock.Middleware(locks, ginlock.Get("user").Named("user"), statusOnly),
		func(*gin.Context) { fmt.Println("this does not run") })

	answer := request(r, "GET", "/me", "")
	fmt.Println(answer.Code, answer.Body)
	// Output:
	// 400 {"error":"no_key"}
}

// A payment that is sent again gets the answer of the first one. Where the payment
// provider did not answer in time, the outcome of the payment is unknown, and it
// is not made again.
func ExampleIdempotent() {
	locks, stop := exampleLocker()
	defer stop()

	payments := 0
	pay := func(c *gin.Context) {
		if c.Query("provider") == "slow" {
			attempt, _ := core.AttemptFromContext(c)
			attempt.Decide(core.EndUnknown)
			c.Status(http.StatusGatewayTimeout)
			return
		}
		payments++
		c.Header("Location", fmt.Sprintf("/payments/%d", payments))
		c.Status(http.StatusCreated)
	}
	authenticate := func(c *gin.Context) {
		c.Set("user_id", 7) // from a session or a token
	}
	r := gin.New()
	r.POST("/payments", authenticate, ginlock.Idempotent(locks,
		core.Join(ginlock.Get("user_id"), ginlock.IdempotencyKey())), pay)

	submit := func(key, target string) {
		submitted := httptest.NewRequestWithContext(context.Background(), "POST", target, nil)
		submitted.Header.Set("Idempotency-Key", key)
		w := httptest.NewRecorder()
		r.ServeHTTP(w, submitted)
		fmt.Printf("%d %q, replayed: %v\n", w.Code, w.Header().Get("Location"), w.Header().Get("Idempotent-Replayed") == "true")
	}
	submit("8e03978e", "/payments")
	submit("8e03978e", "/payments")
	submit("40d543e8", "/payments?provider=slow")
	submit("40d543e8", "/payments?provider=slow")
	// Output:
	// 201 "/payments/1", replayed: false
	// 201 "/payments/1", replayed: true
	// 504 "", replayed: false
	// 409 "", replayed: false
}
