package main

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
)

// A bank reads balances and writes them back later. It relies on the locks of its
// routes: no other request may write a balance in between.
type bank struct {
	slowness time.Duration // how long another bank takes to answer
	balances sync.Map      // of account to int
	limits   sync.Map      // of user to int
}

func newBank(slowness time.Duration) *bank {
	b := &bank{slowness: slowness}
	for _, user := range [...]string{"ada", "bob"} {
		b.balances.Store(user, 100)
		b.limits.Store(user, 50)
	}
	return b
}

func (b *bank) withdraw(c *gin.Context) {
	account := c.Param("id")
	balance, _ := number(&b.balances, account)
	amount, err := strconv.Atoi(c.PostForm("amount"))
	switch {
	case err != nil || amount <= 0:
		c.JSON(http.StatusBadRequest, gin.H{"error": "amount must be a positive number"})
	case balance < amount:
		c.JSON(http.StatusPaymentRequired, gin.H{"balance": balance})
	case b.settle(c):
		b.balances.Store(account, balance-amount)
		c.JSON(http.StatusCreated, gin.H{"balance": balance - amount})
	}
}

func (b *bank) transfer(c *gin.Context) {
	o := c.MustGet("order").(*order)
	from, _ := number(&b.balances, o.From)
	to, known := number(&b.balances, o.To)
	switch {
	case !known:
		c.JSON(http.StatusNotFound, gin.H{"error": "no such account"})
	case from < o.Amount:
		c.JSON(http.StatusPaymentRequired, gin.H{"balance": from})
	case b.settle(c):
		b.balances.Store(o.From, from-o.Amount)
		b.balances.Store(o.To, to+o.Amount)
		c.JSON(http.StatusCreated, gin.H{"balance": from - o.Amount})
	}
}

func (b *bank) limit(c *gin.Context) {
	limit, _ := number(&b.limits, c.GetString(gin.AuthUserKey))
	c.JSON(http.StatusOK, gin.H{"limit": limit})
}

func (b *bank) setLimit(c *gin.Context) {
	limit, err := strconv.Atoi(c.PostForm("limit"))
	if err != nil || limit < 0 {
		c.JSON(http.StatusBadRequest, gin.H{"error": "limit must be a number"})
		return
	}
	if b.settle(c) {
		b.limits.Store(c.GetString(gin.AuthUserKey), limit)
		c.JSON(http.StatusOK, gin.H{"limit": limit})
	}
}

// settle stands for a slow call to another bank. If the client disconnects or the
// lock is lost, it stops, answers and returns false.
func (b *bank) settle(c *gin.Context) bool {
	select {
	case <-time.After(b.slowness):
		return true
	case <-c.Request.Context().Done():
		c.AbortWithStatus(http.StatusServiceUnavailable)
		return false
	}
}

// number returns a number of a map.
func number(of *sync.Map, name string) (n int, known bool) {
	value, known := of.Load(name)
	n, _ = value.(int)
	return n, known
}
