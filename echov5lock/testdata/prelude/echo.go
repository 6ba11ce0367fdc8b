// Package prelude declares the free names of snippets for Echo v5.
package prelude

import (
	"github.com/labstack/echo/v5"

	"github.com/reqlock/reqlock/core"
)

//nolint:unused // snippets use them
var (
	e        *echo.Echo
	transfer echo.HandlerFunc
	locks    *core.Locker
)
