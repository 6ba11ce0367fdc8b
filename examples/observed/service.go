package main

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"go.opentelemetry.io/contrib/instrumentation/github.com/gin-gonic/gin/otelgin"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/ginlock"
)

// routes returns the routes of the bank. otelgin stands before the locks, so that its span
// contains the wait.
func routes(locks *core.Locker, b *bank, t *telemetry) http.Handler {
	r := gin.New()
	r.GET("/metrics", gin.WrapH(t.metrics))

	bank := r.Group("", otelgin.Middleware("bank", otelgin.WithTracerProvider(t.tracers),
		otelgin.WithMeterProvider(t.meters), otelgin.WithPropagators(t.propagator)))
	// The name "account" labels the metrics. The account itself is in no metric.
	account := ginlock.Param("id").Named("account")
	wait := core.WithWait(5 * time.Second)
	bank.POST("/accounts/:id/transfers", ginlock.Middleware(locks, account, wait), b.settle)
	bank.POST("/accounts/:id/withdrawals", ginlock.Middleware(locks, account), b.settle)
	bank.POST("/payments", ginlock.Idempotent(locks, ginlock.IdempotencyKey().Named("payment"), wait), b.settle)
	return r
}

// A bank has one kind of work: it asks another bank.
type bank struct {
	work      time.Duration // how long another bank takes to answer
	telemetry *telemetry
	settling  chan struct{} // gets a value when a request begins its work
}

func newBank(work time.Duration, t *telemetry) *bank {
	return &bank{work: work, telemetry: t, settling: make(chan struct{}, 1)}
}

// settle stands for a slow call to another bank, in a span of its own.
func (b *bank) settle(c *gin.Context) {
	ctx, span := b.telemetry.tracer().Start(c.Request.Context(), "settle")
	defer span.End()
	select {
	case b.settling <- struct{}{}:
	default: // nobody waits for it
	}
	select {
	case <-time.After(b.work):
		c.Status(http.StatusCreated)
	case <-ctx.Done(): // the client disconnected, or the lock was lost
		c.Status(http.StatusServiceUnavailable)
	}
}
