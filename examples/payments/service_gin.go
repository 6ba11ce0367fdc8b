package main

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/ginlock"
)

// A ginService is the bank's on Gin.
type ginService struct {
	bank *bank

	account gin.HandlerFunc // both accounts of a transfer; who comes second is refused
	inTurn  gin.HandlerFunc // the same locks; who comes second waits
	user    gin.HandlerFunc // everything that belongs to one user; who comes second waits
	once    gin.HandlerFunc // one payment of a user; who comes second gets its answer
}

// newGinService returns the service of a bank, with its locks.
func newGinService(bank *bank, locks *core.Locker) *ginService {
	payer := core.Named("account", ginlock.Param("id"))
	payee := ginlock.Also(core.Named("account", ginlock.JSONField("to", ginlock.MaxBody(maxBody))))
	self := core.Named("user", ginlock.GetAs("user", user.Subject))

	return &ginService{
		bank:    bank,
		account: ginlock.Middleware(locks, payer, payee),
		inTurn:  ginlock.Middleware(locks, payer, payee, core.WithWait(10*time.Second)),
		user:    ginlock.Middleware(locks, self, core.WithWait(10*time.Second)),
		once:    ginlock.Idempotent(locks, core.Join(self, ginlock.IdempotencyKey()), core.WithWait(10*time.Second)),
	}
}

// handler returns the routes: recovery and authentication for all of them, and
// then owner check, lock and handler for each.
func (s *ginService) handler() http.Handler {
	r := gin.New()
	r.Use(gin.Recovery(), s.authenticate)
	account := r.Group("/accounts/:id", s.checkOwner)
	account.GET("", s.showAccount)
	account.POST("/transfer", s.account, s.transfer)
	account.POST("/settle", s.inTurn, s.transfer)
	account.POST("/payments", s.once, s.account, s.transfer)
	r.POST("/me/orders", s.user, s.placeOrder)
	return r
}

// authenticate finds out who the user is, for the handlers and the locks.
func (s *ginService) authenticate(c *gin.Context) {
	u, ok := bearer(c.GetHeader("Authorization"))
	if !ok {
		c.Header("WWW-Authenticate", "Bearer")
		c.AbortWithStatusJSON(http.StatusUnauthorized, gin.H{"error": "who are you?"})
		return
	}
	c.Set("user", u)
}

// checkOwner lets only an account's owner pass: the user of the same name.
func (s *ginService) checkOwner(c *gin.Context) {
	if c.MustGet("user").(user).ID != c.Param("id") {
		c.AbortWithStatusJSON(http.StatusForbidden, gin.H{"error": "the account is not yours"})
	}
}

func (s *ginService) showAccount(c *gin.Context) {
	cents, err := s.bank.balance(c.Param("id"))
	if err != nil {
		s.refuse(c, err)
		return
	}
	c.JSON(http.StatusOK, gin.H{"cents": cents})
}

// transfer runs under the locks of both accounts. The context of the request
// ends when one of them is lost, so it goes wherever the work goes.
func (s *ginService) transfer(c *gin.Context) {
	var body transferBody
	if err := c.ShouldBindJSON(&body); err != nil {
		s.refuse(c, errBody)
		return
	}
	made, err := s.bank.transfer(c.Request.Context(), c.Param("id"), body.To, body.Cents)
	if err != nil {
		s.refuse(c, err)
		return
	}
	c.JSON(http.StatusOK, made)
}

// placeOrder runs under the lock of the user.
func (s *ginService) placeOrder(c *gin.Context) {
	var body orderBody
	if err := c.ShouldBindJSON(&body); err != nil {
		s.refuse(c, errBody)
		return
	}
	number, err := s.bank.order(c.Request.Context(), c.MustGet("user").(user).ID, body.Item)
	if err != nil {
		s.refuse(c, err)
		return
	}
	c.JSON(http.StatusCreated, gin.H{"number": number})
}

// refuse answers a request that the bank did not carry out.
func (s *ginService) refuse(c *gin.Context, err error) {
	c.JSON(httpStatusOf(err), gin.H{"error": err.Error()})
}
