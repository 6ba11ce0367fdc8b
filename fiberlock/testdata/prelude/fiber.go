// Package fiber declares the free names of snippets for Fiber.
package fiber

import (
	"github.com/gofiber/fiber/v3"
	"github.com/reqlock/reqlock/core"
)

//nolint:unused // snippets use them
var (
	app                 *fiber.App
	locks               *core.Locker
	auth, pay, transfer fiber.Handler
)
