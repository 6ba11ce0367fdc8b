package idempotent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/idempotency"
	"github.com/gofiber/storage/redis/v3"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/ginlock"
	"github.com/reqlock/reqlock/nethttplock"
	"github.com/reqlock/reqlock/tests/bench/internal/wire"
)

// The frameworks. Fiber has a middleware of its own; the others use reqlock.
const (
	onNetHTTP = "net/http"
	onGin     = "Gin"
	onFiber   = "Fiber"
)

const (
	path      = "/payments"
	keyHeader = "Idempotency-Key"

	answerStatus = 201
	answerType   = "application/json"

	answerHead = `{"payment":"%016x","note":"`
	answerTail = `"}`
	// smallestAnswer is the size of an answer without a note.
	smallestAnswer = len(answerHead) - len("%016x") + 16 + len(answerTail)

	// closeTime is how long the Locker may take to close.
	closeTime = 2 * time.Second
)

// A testService is a service for payments on one framework.
type testService struct {
	addr     string
	payments *payments
	commands *wire.Counter  // sent to Redis
	closers  []func() error // the last one first
}

// open starts the service of a framework on a loopback port, as a case needs it. Its answers have
// that size.
func open(ctx context.Context, framework, which, redisAddr string, size int) (*testService, error) {
	s := &testService{payments: newPayments(size), commands: new(wire.Counter)}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s.addr = listener.Addr().String()
	if framework == onFiber {
		s.serveFiber(listener, which != plain, redisAddr)
		return s, nil
	}
	if err := s.serveHTTP(ctx, listener, framework == onGin, which, redisAddr); err != nil {
		return nil, errors.Join(err, s.close(), listener.Close())
	}
	return s, nil
}

// close ends the service. It does nothing on a nil service.
func (s *testService) close() error {
	if s == nil {
		return nil
	}
	var errs []error
	for _, end := range slices.Backward(s.closers) {
		errs = append(errs, end())
	}
	return errors.Join(errs...)
}

// serveHTTP serves with net/http or Gin.
func (s *testService) serveHTTP(ctx context.Context, listener net.Listener, isGin bool, which, redisAddr string) error {
	client := wire.NewClient([]string{redisAddr}, s.commands, wire.Deadlines)
	s.closers = append(s.closers, client.Close)
	locks, err := core.New(client)
	if err != nil {
		return err
	}
	s.closers = append(s.closers, func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
		defer cancel()
		return locks.Close(ctx)
	})
	server := &http.Server{Handler: s.httpHandler(locks, which != plain), ReadHeaderTimeout: time.Minute}
	switch {
	case which == copied:
		server.Handler = s.copyingHandler(client)
	case isGin:
		server.Handler = s.ginHandler(locks, which != plain) //nolint:contextcheck // a request brings its own
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	s.closers = append(s.closers, func() error {
		err := server.Close()
		if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
			err = errors.Join(err, ended)
		}
		return err
	})
	return nil
}

func (s *testService) httpHandler(locks *core.Locker, idempotent bool) http.Handler {
	var pay http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", answerType)
		w.WriteHeader(answerStatus)
		_, _ = w.Write(s.payments.answer())
	})
	if idempotent {
		pay = nethttplock.Idempotent(locks, nethttplock.IdempotencyKey())(pay)
	}
	mux := http.NewServeMux()
	mux.Handle("POST "+path, pay)
	return mux
}

func (s *testService) ginHandler(locks *core.Locker, idempotent bool) http.Handler {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	if idempotent {
		engine.Use(ginlock.Idempotent(locks, ginlock.IdempotencyKey()))
	}
	engine.POST(path, func(c *gin.Context) {
		_, _ = io.Copy(io.Discard, c.Request.Body)
		c.Data(answerStatus, answerType, s.payments.answer())
	})
	return engine
}

// serveFiber serves with Fiber, which uses fasthttp.
func (s *testService) serveFiber(listener net.Listener, idempotent bool, redisAddr string) {
	storage := redis.NewFromConnection(wire.NewClient([]string{redisAddr}, s.commands))
	app := fiber.New()
	if idempotent {
		app.Use(idempotency.New(idempotency.Config{Storage: storage, KeyHeader: keyHeader}))
	}
	app.Post(path, func(c fiber.Ctx) error {
		_ = c.Body() // fasthttp has read it
		c.Set(fiber.HeaderContentType, answerType)
		return c.Status(answerStatus).Send(s.payments.answer())
	})
	served := make(chan error, 1)
	go func() { served <- app.Listener(listener, fiber.ListenConfig{DisableStartupMessage: true}) }()
	s.closers = append(s.closers, storage.Close, func() error { return errors.Join(app.Shutdown(), <-served) })
}

// payments makes the answers of the handlers. It numbers them, so that an answer shows whether it
// is a replay: a second run of the handler would return another number.
type payments struct {
	answers atomic.Int64
	note    []byte
}

// newPayments returns payments whose answers have that size.
func newPayments(size int) *payments {
	return &payments{note: bytes.Repeat([]byte("x"), size-smallestAnswer)}
}

// answer returns the next answer, which is JSON.
func (p *payments) answer() []byte {
	answer := make([]byte, 0, smallestAnswer+len(p.note))
	answer = fmt.Appendf(answer, answerHead, p.answers.Add(1))
	answer = append(answer, p.note...)
	return append(answer, answerTail...)
}
