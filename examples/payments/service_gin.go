package main

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/ginlock"
)

// A ginService is the service of the bank on Gin.
type ginService struct {
	bank *bank

	account gin.HandlerFunc // both accounts of a transfer; the second request is refused
	inTurn  gin.HandlerFunc // the same locks; the second request waits
	user    gin.HandlerFunc // everything that belongs to one user; the second request waits
	reads   gin.HandlerFunc // one account, beside other readers
	batch   gin.HandlerFunc // the batch jobs of the bank; three run at once, and the others wait
	once    gin.HandlerFunc // one payment of a user; a copy gets the first answer
}

// newGinService returns the service of a bank, with its locks.
func newGinService(bank *bank, locks *core.Locker) *ginService {
	payer := core.Named("account", ginlock.Param("id"))
	payee := ginlock.Also(core.Named("account", ginlock.JSONField("to", ginlock.MaxBody(maxBody))))
	self := core.Named("user", ginlock.GetAs("user", user.Subject))
	batch := core.Named("jobs", ginlock.Literal("batch"))

	return &ginService{
		bank:    bank,
		account: ginlock.Middleware(locks, payer, payee),
		inTurn:  ginlock.Middleware(locks, payer, payee, core.WithWait(10*time.Second)),
		user:    ginlock.Middleware(locks, self, core.WithWait(10*time.Second)),
		reads:   ginlock.Middleware(locks, core.Shared(payer), core.WithWait(10*time.Second)),
		batch:   ginlock.Middleware(locks, core.Permits(3, batch), core.WithWait(10*time.Second)),
		once:    ginlock.Idempotent(locks, core.Join(self, ginlock.IdempotencyKey()), core.WithWait(10*time.Second)),
	}
}

// handler returns the routes: recovery and authentication for all routes, and then
// owner check, lock and handler for each.
func (s *ginService) handler() http.Handler {
	r := gin.New()
	r.Use(gin.Recovery(), s.authenticate)
	account := r.Group("/accounts/:id", s.checkOwner)
	account.GET("", s.reads, s.showAccount)
	account.POST("/transfer", s.account, s.transfer)
	account.POST("/settle", s.batch, s.inTurn, s.transfer)
	account.POST("/payments", s.once, s.account, s.transfer)
	r.POST("/me/orders", s.user, s.placeOrder)
	return r
}

// authenticate stores the user of the request, for the handlers and the locks.
func (s *ginService) authenticate(c *gin.Context) {
	u, ok := bearer(c.GetHeader("Authorization"))
	if !ok {
		c.Header("WWW-Authenticate", "Bearer")
		c.AbortWithStatusJSON(http.StatusUnauthorized, gin.H{"error": "the user is unknown"})
		return
	}
	c.Set("user", u)
}

// checkOwner refuses requests for the account of another user. An account has the
// name of its owner.
func (s *ginService) checkOwner(c *gin.Context) {
	if c.MustGet("user").(user).ID != c.Param("id") {
		c.AbortWithStatusJSON(http.StatusForbidden, gin.H{"error": "the account is not yours"})
	}
}

func (s *ginService) showAccount(c *gin.Context) {
	cents, err := s.bank.show(c.Request.Context(), c.Param("id"))
	if err != nil {
		s.refuse(c, err)
		return
	}
	c.JSON(http.StatusOK, gin.H{"cents": cents})
}

// transfer runs under the locks of both accounts. The context of the request ends if
// one of the locks is lost, so the handler passes it on.
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

// refuse answers a request with an error of the bank.
func (s *ginService) refuse(c *gin.Context, err error) {
	c.JSON(httpStatusOf(err), gin.H{"error": err.Error()})
}
