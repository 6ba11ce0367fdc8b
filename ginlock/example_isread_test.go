package ginlock_test

import (
	"context"
	"fmt"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/ginlock"
)

// Reads of an account run beside each other, and a write has the account alone.
func ExampleIsRead() {
	locks, stop := exampleLocker()
	defer stop()
	defer func() { _ = locks.Close(context.Background()) }()

	r := gin.New()
	account := r.Group("/accounts/:id", ginlock.Middleware(locks,
		ginlock.Param("id").Named("account").SharedWhen(ginlock.IsRead), core.WithWait(500*time.Millisecond)))
	account.GET("", func(c *gin.Context) {
		if c.Query("first") != "" {
			// While this read runs, the same client sends another one, and a write.
			fmt.Println("a read beside it:", request(r, "GET", "/accounts/42", "").Code)
			fmt.Println("a write beside it:", request(r, "POST", "/accounts/42", "").Code)
		}
	})
	account.POST("", func(*gin.Context) {})

	fmt.Println("a read:", request(r, "GET", "/accounts/42?first=1", "").Code)
	fmt.Println("a write after it:", request(r, "POST", "/accounts/42", "").Code)
	// Output:
	// a read beside it: 200
	// a write beside it: 409
	// a read: 200
	// a write after it: 200
}
