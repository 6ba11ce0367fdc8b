package main

import (
	"io"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/ginlock"
)

// routes returns the routes of the bank. Authentication and validation come first,
// then the lock, then the handler.
func routes(locks *core.Locker, b *bank, log io.Writer) http.Handler {
	r := gin.New()
	r.Use(gin.LoggerWithWriter(log), gin.RecoveryWithWriter(log))
	auth := gin.BasicAuth(gin.Accounts{"ada": "secret", "bob": "secret"})

	// Two withdrawals at the same time are a mistake: the second one is refused with
	// 409.
	r.POST("/accounts/:id/withdrawals", auth, mayUse,
		ginlock.Middleware(locks, core.Named("account", ginlock.Param("id"))), b.withdraw)

	// A transfer waits for other transfers of the same accounts, and excludes
	// withdrawals from both. With an Idempotency-Key it is made once, even if it is
	// sent several times. Idempotent reads the body, so it comes before bindOrder,
	// which consumes the body.
	once := ginlock.Idempotent(locks, core.Join(ginlock.Get(gin.AuthUserKey), ginlock.IdempotencyKey()),
		ginlock.WithOptionalKey(), core.WithWait(5*time.Second))
	r.POST("/transfers", auth, once, bindOrder, ginlock.Middleware(locks,
		core.Named("account", ginlock.GetAs("order", func(o *order) string { return o.From })),
		ginlock.Also(core.Named("account", ginlock.GetAs("order", func(o *order) string { return o.To }))),
		core.WithWait(5*time.Second),
	), b.transfer)

	// One request at a time changes the data of a user, on all routes. Reads run
	// without a lock.
	isWrite := func(c *gin.Context) bool { return c.Request.Method != http.MethodGet }
	me := r.Group("/me", auth, ginlock.Middleware(locks,
		core.When(isWrite, core.Named("user", ginlock.Get(gin.AuthUserKey))),
		core.WithWait(2*time.Second)))
	me.GET("/limit", b.limit)
	me.PUT("/limit", b.setLimit)
	return r
}

// mayUse refuses requests for the account of another user, before the lock.
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

// bindOrder refuses invalid orders, and stores the order for the lock and the
// handler.
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
