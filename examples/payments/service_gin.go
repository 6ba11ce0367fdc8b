package main

import (
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/ginlock"
)

// A ginService is the service of a bank on Gin.
type ginService struct{ bank *bank }

// newGinService returns the routes of a bank, with their locks.
//
// A lock comes after every middleware that may refuse the request: otherwise a client without rights
// could block an account. A copy of a payment needs no lock, so Idempotent comes before the locks.
func newGinService(bank *bank, locks *core.Locker) http.Handler {
	s := ginService{bank}
	wait := core.WithWait(10 * time.Second)

	// Locks with the same name and key exclude each other on all routes.
	payer := ginlock.Param("id").Named("account")
	both := core.All(payer, ginlock.JSONField("to").Named("account"))
	self := ginlock.Get("user").Named("user")
	jobs := ginlock.Literal("batch").Named("jobs")

	alone := ginlock.Middleware(locks, both)        // a second request is refused
	inTurn := ginlock.Middleware(locks, both, wait) // a second request waits
	reads := ginlock.Middleware(locks, payer.Shared(), wait)
	batch := ginlock.Middleware(locks, jobs.Permits(3), wait)
	user := ginlock.Middleware(locks, self, wait)
	once := ginlock.Idempotent(locks, core.Join(self, ginlock.IdempotencyKey()), wait)
	paidOut := ginlock.Middleware(locks, payer, core.WithFencing(true)) // its lease can be handed over

	r := gin.New()
	r.Use(gin.Recovery())
	account := r.Group("/accounts/:id", s.authenticate)
	account.GET("/balance", reads, s.showAccount)
	// A person sends a transfer. A second click is refused.
	account.POST("/transfer", alone, s.transfer)
	// A batch job sends settlements. Three run at once, and wait for their accounts.
	account.POST("/settle", batch, inTurn, s.transfer)
	// A program sends a payment again until it has an answer. A copy gets the first answer.
	account.POST("/payments", once, alone, s.transfer)
	// A worker makes a payout, under the same lock. The client has a 202 before.
	account.POST("/payouts", once, paidOut, s.payOut)
	account.POST("/orders", user, s.placeOrder)
	return r
}

// authenticate stores the user of the request for the locks and the handlers, and refuses requests for
// the account of another user. In this example the bearer token and the account are the user's name.
func (s ginService) authenticate(c *gin.Context) {
	user, ok := strings.CutPrefix(c.GetHeader("Authorization"), "Bearer ")
	if !ok {
		c.AbortWithStatusJSON(http.StatusUnauthorized, gin.H{"error": "the user is unknown"})
		return
	}
	if c.Param("id") != user {
		c.AbortWithStatusJSON(http.StatusForbidden, gin.H{"error": "the account is not yours"})
		return
	}
	c.Set("user", user)
}

// transfer runs under the locks of both accounts. The context of the request ends if one of the
// locks is lost, so the handler passes it on.
func (s ginService) transfer(c *gin.Context) {
	var body transfer
	if err := c.ShouldBindJSON(&body); err != nil {
		s.reply(c, nil, errInvalid)
		return
	}
	made, err := s.bank.transfer(c.Request.Context(), c.Param("id"), body)
	s.reply(c, made, err)
}

// showAccount shares the lock of the account with other readers.
func (s ginService) showAccount(c *gin.Context) {
	cents, err := s.bank.show(c.Request.Context(), c.Param("id"))
	s.reply(c, gin.H{"cents": cents}, err)
}

// payOut runs under the lock of the account, and hands it over.
func (s ginService) payOut(c *gin.Context) {
	var body transfer
	if err := c.ShouldBindJSON(&body); err != nil {
		s.reply(c, nil, errInvalid)
		return
	}
	location, err := s.bank.payOut(c.Request.Context(), c.Param("id"), body.Cents)
	if err != nil {
		s.reply(c, nil, err)
		return
	}
	c.Header("Location", location)
	c.Status(http.StatusAccepted)
}

// placeOrder runs under the lock of the user.
func (s ginService) placeOrder(c *gin.Context) {
	number, err := s.bank.order(c.Request.Context(), c.GetString("user"), c.Query("item"))
	s.reply(c, gin.H{"number": number}, err)
}

// reply answers with JSON: the body, or an error of the bank.
func (s ginService) reply(c *gin.Context, body any, err error) {
	if err != nil {
		r := refusalOf(err)
		c.JSON(r.http, gin.H{"error": r.text})
		return
	}
	c.JSON(http.StatusOK, body)
}
