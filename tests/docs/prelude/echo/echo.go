// Package echo declares the free names of snippets for Echo.
package echo

import "github.com/labstack/echo/v4"

//nolint:unused // snippets use them
var (
	e             *echo.Echo
	c             echo.Context
	pay, transfer echo.HandlerFunc
	auth          echo.MiddlewareFunc
)
