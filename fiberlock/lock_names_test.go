package fiberlock_test

import (
	"net/http"
	"testing"

	"github.com/gofiber/fiber/v3"

	"github.com/reqlock/reqlock/fiberlock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
)

// A refusal does not repeat the headers of an application that keeps the case of their names.
func TestNamesOfHeadersThatAreNotNormalized(t *testing.T) {
	t.Parallel()
	app := fiber.New(fiber.Config{DisableHeaderNormalizing: true})
	app.Post("/", func(c fiber.Ctx) error {
		c.Set("x-request-id", "1")
		return c.Next()
	}, fiberlock.Middleware(adaptertest.UnusedLocker(t), byKey), mustNotRun(t))
	w := send(t, newClient(t), newRequest(t, http.MethodPost, listen(t, app), ""))
	if values := w.Header()["X-Request-Id"]; w.Code != http.StatusBadRequest || len(values) != 1 {
		t.Errorf("%d %v %s", w.Code, values, w.Body)
	}
}
