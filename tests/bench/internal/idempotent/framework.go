package idempotent

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/ginlock"
	"github.com/reqlock/reqlock/nethttplock"
	"github.com/reqlock/reqlock/tests/bench/internal/service"
	"github.com/reqlock/reqlock/tests/bench/internal/stack"
	"github.com/reqlock/reqlock/tests/bench/internal/wire"
)

// The frameworks. Fiber has a middleware of its own; the others use reqlock.
const (
	NetHTTP = "net/http"
	Gin     = "Gin"
	Fiber   = "Fiber"
)

// Frameworks returns the names of the frameworks.
func Frameworks() []string { return []string{NetHTTP, Gin, Fiber} }

const (
	path      = "/payments"
	keyHeader = "Idempotency-Key"
)

// A testService is a service for payments on one framework.
type testService struct {
	addr     string
	payments *paymentHandler
	commands *wire.Counter // sent to Redis
	parts    []io.Closer   // to close, the last one first
}

// open starts the service of a framework on a loopback port, with or without its
// middleware. Its answers have that size.
func open(ctx context.Context, framework string, idempotent bool, redis string, answer int) (*testService, error) {
	s := &testService{payments: newPaymentHandler(answer), commands: new(wire.Counter)}
	start := s.startHTTP
	if framework == Fiber {
		start = s.startFiber
	}
	if err := start(ctx, framework, idempotent, redis); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// close ends the service. It does nothing on a nil site.
func (s *testService) close() error {
	if s == nil {
		return nil
	}
	var errs []error
	for _, part := range slices.Backward(s.parts) {
		errs = append(errs, part.Close())
	}
	return errors.Join(errs...)
}

// startHTTP starts the service on the server of net/http.
func (s *testService) startHTTP(ctx context.Context, framework string, idempotent bool, redis string) error {
	backend, err := stack.Open(redis, s.commands)
	if err != nil {
		return err
	}
	s.parts = append(s.parts, backend)
	var locks *core.Locker
	if idempotent {
		locks = backend.Locks
	}
	handler := s.stdHandler(locks)
	if framework == Gin {
		handler = s.ginHandler(locks)
	}
	served, err := service.Serve(ctx, handler)
	if err != nil {
		return err
	}
	s.parts = append(s.parts, served)
	s.addr = served.Addr
	return nil
}

func (s *testService) stdHandler(locks *core.Locker) http.Handler {
	var pay http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", answerType)
		w.WriteHeader(answerStatus)
		_, _ = w.Write(s.payments.answer())
	})
	if locks != nil {
		pay = nethttplock.Idempotent(locks, nethttplock.IdempotencyKey())(pay)
	}
	mux := http.NewServeMux()
	mux.Handle("POST "+path, pay)
	return mux
}

func (s *testService) ginHandler(locks *core.Locker) http.Handler {
	gin.SetMode(gin.ReleaseMode)
	handlers := []gin.HandlerFunc{func(c *gin.Context) {
		_, _ = io.Copy(io.Discard, c.Request.Body)
		c.Data(answerStatus, answerType, s.payments.answer())
	}}
	if locks != nil {
		handlers = append([]gin.HandlerFunc{ginlock.Idempotent(locks, ginlock.IdempotencyKey())}, handlers...)
	}
	engine := gin.New()
	engine.POST(path, handlers...)
	return engine
}
