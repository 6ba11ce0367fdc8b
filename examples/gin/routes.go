package main

import (
	"io"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/ginlock"
)

// routes are those of the bank. Authentication and validation come first, then
// the lock, then the handler.
func routes(locks *core.Locker, b *bank, log io.Writer) http.Handler {
	r := gin.New()
	r.Use(gin.LoggerWithWriter(log), gin.RecoveryWithWriter(log))
	auth := gin.BasicAuth(gin.Accounts{"ada": "secret", "bob": "secret"})

	// Whoever withdraws twice at once did not mean to: the second one is
	// refused with 409.
	r.POST("/accounts/:id/withdrawals", auth, mayUse,
		ginlock.Middleware(locks, core.Named("account", ginlock.Param("id"))), b.withdraw)

	// A transfer waits for others of the same accounts, and keeps withdrawals
	// from both. With an Idempotency-Key it is made once, however often it is
	// sent. That reads the body too, so it comes before bindOrder, which leaves
	// none.
	once := ginlock.Idempotent(locks, core.Join(ginlock.Get(gin.AuthUserKey), ginlock.IdempotencyKey()),
		ginlock.WithOptionalKey(), core.WithWait(5*time.Second))
	r.POST("/transfers", auth, once, bindOrder, ginlock.Middleware(locks,
		core.Named("account", ginlock.GetAs("order", func(o *order) string { return o.From })),
		ginlock.Also(core.Named("account", ginlock.GetAs("order", func(o *order) string { return o.To }))),
		core.WithWait(5*time.Second),
	), b.transfer)

	// What one user changes, by whatever route, is changed by one request at a
	// time. Reads run beside it.
	isWrite := func(c *gin.Context) bool { return c.Request.Method != http.MethodGet }
	me := r.Group("/me", auth, ginlock.Middleware(locks,
		core.When(isWrite, core.Named("user", ginlock.Get(gin.AuthUserKey))),
		core.WithWait(2*time.Second)))
	me.GET("/limit", b.limit)
	me.PUT("/limit", b.setLimit)
	return r
}

// mayUse refuses users whose account it is not, before they could lock it.
func mayUse(c *gin.Context) {
	if c.Param("id") != c.GetString(gin.AuthUserKey) {
		c.AbortWithStatusJSON(http.StatusForbidden, gin.H{"error": "not your account"})
	}
}

// An order is the body of a transfer.
type order struct {
	From   string `json:"from" binding:"required"`
	To     string `json:"to" binding:"required,nefield=From"`
	Amount int    `json:"amount" binding:"gt=0"`
}

// bindOrder refuses what the user may not order, and leaves the order for the
// lock and the handler.
func bindOrder(c *gin.Context) {
	o := new(order)
	if err := c.ShouldBindJSON(o); err != nil {
		c.AbortWithStatusJSON(http.StatusBadRequest, gin.H{"error": "not a transfer"})
		return
	}
	if o.From != c.GetString(gin.AuthUserKey) {
		c.AbortWithStatusJSON(http.StatusForbidden, gin.H{"error": "not your account"})
		return
	}
	c.Set("order", o)
}
