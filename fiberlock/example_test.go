package fiberlock_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/gofiber/fiber/v3"
	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/fiberlock"
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

// request makes a request with headers, given as "name: value", and returns the answer.
func request(app *fiber.App, method, target, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(context.Background(), method, target, strings.NewReader(body))
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Set(name, value)
	}
	return answerOf(app, r)
}

// A transfer is refused while another transfer from its account runs.
func Example() {
	locks, stop := exampleLocker()
	defer stop()

	app := fiber.New()
	transfer := func(c fiber.Ctx) error {
		if c.Params("id") == "42" {
			// While this transfer runs, the same client sends another transfer.
			again := request(app, "POST", "/accounts/42/transfer", "")
			fmt.Println("meanwhile:", again.Code, "Retry-After:", again.Header().Get("Retry-After"))
			fmt.Println("another account:", request(app, "POST", "/accounts/43/transfer", "").Code)
		}
		return c.SendStatus(fiber.StatusCreated)
	}
	app.Post("/accounts/:id/transfer", fiberlock.Middleware(locks, fiberlock.Params("id").Named("account")), transfer)

	fmt.Println("first:", request(app, "POST", "/accounts/42/transfer", "").Code)
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
	authenticate := func(c fiber.Ctx) error {
		c.Locals("user", &User{ID: "ada"}) // from a session or a token
		return c.Next()
	}
	app := fiber.New()
	me := app.Group("/me", authenticate, fiberlock.Middleware(locks,
		fiberlock.LocalsAs("user", func(u *User) string { return u.ID }).Named("user"),
		core.WithWait(2*time.Second)))
	me.Get("/", func(c fiber.Ctx) error {
		lease, _ := core.LeaseFromContext(c.Context())
		return c.SendString("under the lock " + lease.Key())
	})

	fmt.Println(request(app, "GET", "/me", "").Body)
	// Output:
	// under the lock user:ada
}

// A middleware of app.Use runs before Fiber knows the route. With a key that is no parameter of a route,
// it locks all paths, also unknown ones.
func ExampleMiddleware_use() {
	locks, stop := exampleLocker()
	defer stop()

	app := fiber.New()
	app.Use("/reports", fiberlock.Middleware(locks, fiberlock.Header("X-Tenant").Named("tenant")))
	app.Get("/reports/daily", func(c fiber.Ctx) error { return c.SendString("report") })

	fmt.Println(request(app, "GET", "/reports/daily", "", "X-Tenant: acme").Code, request(app, "GET", "/reports/daily", "").Code)
	fmt.Println(request(app, "GET", "/reports/unknown", "", "X-Tenant: acme").Code, request(app, "GET", "/unknown", "").Code)
	// Output:
	// 200 400
	// 404 404
}

// The handler still binds the whole body.
func ExampleJSONField() {
	locks, stop := exampleLocker()
	defer stop()

	app := fiber.New()
	app.Post("/payments", fiberlock.Middleware(locks, fiberlock.JSONField("account.id").Named("account")), func(c fiber.Ctx) error {
		var payment struct {
			Account struct{ ID int }
			Amount  int
		}
		if err := c.Bind().JSON(&payment); err != nil {
			return fiber.ErrBadRequest
		}
		return c.JSON(payment)
	})

	fmt.Println(request(app, "POST", "/payments", `{"account":{"id":42},"amount":7}`, "Content-Type: application/json").Body)
	fmt.Println(request(app, "POST", "/payments", `{"amount":7}`).Code)
	fmt.Println(request(app, "POST", "/payments", `{"account":{"id":42,"id":43}}`).Code)
	// Output:
	// {"Account":{"ID":42},"Amount":7}
	// 400
	// 400
}

// A transfer locks both of its accounts. A transfer from a to b and a transfer from b
// to a exclude each other, and do not deadlock.
func ExampleMiddleware_severalKeys() {
	locks, stop := exampleLocker()
	defer stop()

	app := fiber.New()
	app.Post("/transfers", fiberlock.Middleware(locks, core.All(fiberlock.JSONField("from"), fiberlock.JSONField("to")).Named("account"), core.WithWait(2*time.Second)), func(fiber.Ctx) error {
		for _, account := range []string{"account:a", "account:b", "account:c"} {
			_, err := locks.TryLock(context.Background(), account)
			fmt.Println(account, "is taken:", err != nil)
		}
		return nil
	})

	request(app, "POST", "/transfers", `{"from":"b","to":"a"}`)
	// Output:
	// account:a is taken: true
	// account:b is taken: true
	// account:c is taken: false
}

// An error handler answers one refusal, and leaves the others to the ErrorHandler of the application.
func ExampleWithErrorHandler() {
	locks, stop := exampleLocker()
	defer stop()

	app := fiber.New(fiber.Config{ErrorHandler: func(c fiber.Ctx, err error) error {
		status := fiber.StatusInternalServerError
		if refusal, known := core.RefusalOf(err); known {
			status = refusal.HTTP
		}
		return c.Status(status).JSON(fiber.Map{"error": err.Error()}) // of a refusal: its code
	}})
	refused := func(c fiber.Ctx, err error) error {
		if refusal, _ := core.RefusalOf(err); refusal.Code == "no_key" {
			return c.Status(fiber.StatusUnauthorized).SendString("the user is unknown")
		}
		return err
	}
	me := func(key fiberlock.Key) fiber.Handler {
		return fiberlock.Middleware(locks, key, fiberlock.WithErrorHandler(refused))
	}
	app.Get("/me", me(fiberlock.Locals("user")), func(fiber.Ctx) error { return nil })
	app.Get("/me/:id", me(fiberlock.Params("id")), func(fiber.Ctx) error {
		fmt.Println(request(app, "GET", "/me/ada", "").Body)
		return nil
	})

	answer := request(app, "GET", "/me", "")
	fmt.Println(answer.Code, answer.Body)
	request(app, "GET", "/me/ada", "")
	// Output:
	// 401 the user is unknown
	// {"error":"busy"}
}

// A payment that is sent again gets the answer of the first one. Where the payment
// provider did not answer in time, the outcome of the payment is unknown, and it
// is not made again.
func ExampleIdempotent() {
	locks, stop := exampleLocker()
	defer stop()

	payments := 0
	pay := func(c fiber.Ctx) error {
		if c.Query("provider") == "slow" {
			attempt, _ := core.AttemptFromContext(c.Context())
			attempt.Decide(core.EndUnknown)
			return fiber.ErrGatewayTimeout
		}
		payments++
		c.Location(fmt.Sprintf("/payments/%d", payments))
		return c.SendStatus(fiber.StatusCreated)
	}
	authenticate := func(c fiber.Ctx) error {
		c.Locals("user_id", 7) // from a session or a token
		return c.Next()
	}
	app := fiber.New()
	app.Post("/payments", authenticate, fiberlock.Idempotent(locks,
		core.Join(fiberlock.Locals("user_id"), fiberlock.IdempotencyKey())), pay)

	submit := func(key, target string) {
		answer := request(app, "POST", target, "", "Idempotency-Key: "+key)
		fmt.Printf("%d %q, replayed: %v\n", answer.Code, answer.Header().Get("Location"), answer.Header().Get("Idempotent-Replayed") == "true")
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

// Reads of an account run beside each other, and a write has the account alone.
func ExampleIsRead() {
	locks, stop := exampleLocker()
	defer stop()
	defer func() { _ = locks.Close(context.Background()) }()

	app := fiber.New()
	account := fiberlock.Middleware(locks,
		fiberlock.Params("id").Named("account").SharedWhen(fiberlock.IsRead), core.WithWait(500*time.Millisecond))
	app.Get("/accounts/:id", account, func(c fiber.Ctx) error {
		if c.Query("first") != "" {
			// While this read runs, the same client sends another one, and a write.
			fmt.Println("a read beside it:", request(app, "GET", "/accounts/42", "").Code)
			fmt.Println("a write beside it:", request(app, "POST", "/accounts/42", "").Code)
		}
		return nil
	})
	app.Post("/accounts/:id", account, func(fiber.Ctx) error { return nil })

	fmt.Println("a read:", request(app, "GET", "/accounts/42?first=1", "").Code)
	fmt.Println("a write after it:", request(app, "POST", "/accounts/42", "").Code)
	// Output:
	// a read beside it: 200
	// a write beside it: 409
	// a read: 200
	// a write after it: 200
}
