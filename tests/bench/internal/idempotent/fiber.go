package idempotent

import (
	"context"
	"errors"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/idempotency"
	"github.com/gofiber/storage/redis/v3"

	"github.com/reqlock/reqlock/tests/bench/internal/service"
	"github.com/reqlock/reqlock/tests/bench/internal/wire"
)

// startFiber starts the service on Fiber, which uses fasthttp.
func (s *testService) startFiber(ctx context.Context, _ string, idempotent bool, addr string) error {
	storage := redis.NewFromConnection(wire.NewClient([]string{addr}, s.commands))
	s.parts = append(s.parts, storage)
	app := fiber.New()
	if idempotent {
		app.Use(idempotency.New(idempotency.Config{Storage: storage, KeyHeader: keyHeader}))
	}
	app.Post(path, func(c fiber.Ctx) error {
		_ = c.Body() // fasthttp has read it
		c.Set(fiber.HeaderContentType, answerType)
		return c.Status(answerStatus).Send(s.payments.answer())
	})

	listener, err := service.Listen(ctx)
	if err != nil {
		return err
	}
	served := &fiberServer{app: app, served: make(chan error, 1)}
	go func() { served.served <- app.Listener(listener, fiber.ListenConfig{DisableStartupMessage: true}) }()
	s.parts = append(s.parts, served)
	s.addr = listener.Addr().String()
	return nil
}

// A fiberServer is a running service on Fiber.
type fiberServer struct {
	app    *fiber.App
	served chan error
}

// Close ends the service after its clients have disconnected.
func (s *fiberServer) Close() error { return errors.Join(s.app.Shutdown(), <-s.served) }
