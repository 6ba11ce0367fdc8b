package main

import (
	"io"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/ginlock"
)

// A rule is a route of the bank, and the locks of its requests.
type rule struct {
	method, path string
	// once is the key for which a request runs once. The zero Key: each request runs.
	once ginlock.Key
	// check refuses requests before the lock. nil: none.
	check gin.HandlerFunc
	// lock is what a request locks. The zero Key: it runs without a lock.
	lock ginlock.Key
	// wait is how long a request waits for its locks. 0: it is refused at once.
	wait    time.Duration
	handler gin.HandlerFunc
}

// rules is the table of all routes and their locks. Routes are made from it alone, so a
// reviewer who reads this table has seen all locks of the service.
func (b *bank) rules() []rule {
	account := ginlock.Param("id").Named("account")
	from := ginlock.GetAs("order", func(o *order) string { return o.From }).Named("account")
	to := ginlock.GetAs("order", func(o *order) string { return o.To }).Named("account")
	user := ginlock.Get(gin.AuthUserKey).Named("user")
	return []rule{
		// Two withdrawals at the same time are a mistake: the second one gets 409.
		{method: "POST", path: "/accounts/:id/withdrawals", check: mayUse, lock: account, handler: b.withdraw},
		// A transfer waits for other transfers of its accounts, and excludes withdrawals
		// from both. With an Idempotency-Key it is made once.
		{
			method: "POST", path: "/transfers", once: core.Join(ginlock.Get(gin.AuthUserKey), ginlock.IdempotencyKey()),
			check: bindOrder, lock: core.All(from, to), wait: 5 * time.Second, handler: b.transfer,
		},
		// One request at a time changes the data of a user. Reads run without a lock.
		{method: "GET", path: "/me/limit", handler: b.limit},
		{method: "PUT", path: "/me/limit", lock: user, wait: 2 * time.Second, handler: b.setLimit},
	}
}

// handlers returns the chain of a route behind authentication: Idempotent reads the body,
// so it comes before a check that consumes the body, and the lock comes last.
func (r rule) handlers(locks *core.Locker) []gin.HandlerFunc {
	var chain []gin.HandlerFunc
	if !r.once.IsZero() {
		chain = append(chain, ginlock.Idempotent(locks, r.once, core.WithOptionalKey(), core.WithWait(r.wait)))
	}
	if r.check != nil {
		chain = append(chain, r.check)
	}
	if !r.lock.IsZero() {
		chain = append(chain, ginlock.Middleware(locks, r.lock, core.WithWait(r.wait)))
	}
	return append(chain, r.handler)
}

// routes returns the routes of the bank: those of its rules. Authentication and validation
// come first, then the lock, then the handler.
func routes(locks *core.Locker, b *bank, log io.Writer) http.Handler {
	r := gin.New()
	r.Use(gin.LoggerWithWriter(log), gin.RecoveryWithWriter(log))
	auth := gin.BasicAuth(gin.Accounts{"ada": "secret", "bob": "secret"})

	for _, rule := range b.rules() {
		r.Handle(rule.method, rule.path, append([]gin.HandlerFunc{auth}, rule.handlers(locks)...)...)
	}
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
