package main

import (
	"io"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/core"
)

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
