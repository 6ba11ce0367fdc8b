package echolock_test

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/echolock"
)

// Reads of an account run beside each other, and a write has the account alone.
func ExampleIsRead() {
	locks, stop := exampleLocker()
	defer stop()
	defer func() { _ = locks.Close(context.Background()) }()

	e := echo.New()
	account := e.Group("/accounts/:id", echolock.Middleware(locks,
		echolock.Param("id").Named("account").SharedWhen(echolock.IsRead), core.WithWait(500*time.Millisecond)))
	account.GET("", func(c echo.Context) error {
		if c.QueryParam("first") != "" {
			// While this read runs, the same client sends another one, and a write.
			fmt.Println("a read beside it:", send(e, "GET", "/accounts/42", "").Code)
			fmt.Println("a write beside it:", send(e, "POST", "/accounts/42", "").Code)
		}
		return c.NoContent(http.StatusOK)
	})
	account.POST("", func(c echo.Context) error { return c.NoContent(http.StatusOK) })

	fmt.Println("a read:", send(e, "GET", "/accounts/42?first=1", "").Code)
	fmt.Println("a write after it:", send(e, "POST", "/accounts/42", "").Code)
	// Output:
	// a read beside it: 200
	// a write beside it: 409
	// a read: 200
	// a write after it: 200
}
