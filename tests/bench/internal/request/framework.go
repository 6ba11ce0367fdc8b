package request

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/labstack/echo/v4"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/echolock"
	"github.com/reqlock/reqlock/ginlock"
	"github.com/reqlock/reqlock/nethttplock"
)

// Frameworks returns the names of the frameworks.
func Frameworks() []string { return []string{"net/http", "Gin", "Echo", "gRPC"} }

// greeting is the response of all handlers.
const greeting = "hello"

// A testService is a service on one framework. The key of the lock is the id of the client.
type testService interface {
	// call calls the service over the network.
	call(ctx context.Context, id string) error
	// direct returns a call without a network, from inside the framework.
	direct(ctx context.Context, id string) (serve func() error, err error)
	close() error
}

// open starts the service of a framework on a loopback port. If locks is nil, it does not
// lock.
func open(ctx context.Context, framework string, locks *core.Locker) (testService, error) {
	switch framework {
	case "net/http":
		return openHTTP(ctx, stdHandler(locks))
	case "Gin":
		return openHTTP(ctx, ginHandler(locks))
	case "Echo":
		return openHTTP(ctx, echoHandler(locks)) //nolint:contextcheck // a middleware uses the context of each request
	default:
		return openGRPC(ctx, locks)
	}
}

func stdHandler(locks *core.Locker) http.Handler {
	var handler http.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(greeting))
	})
	if locks != nil {
		handler = nethttplock.Middleware(locks, nethttplock.PathValue("id"))(handler)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /greeting/{id}", handler)
	return mux
}

func ginHandler(locks *core.Locker) http.Handler {
	gin.SetMode(gin.ReleaseMode)
	handlers := []gin.HandlerFunc{func(c *gin.Context) { c.String(http.StatusOK, greeting) }}
	if locks != nil {
		handlers = append([]gin.HandlerFunc{ginlock.Middleware(locks, ginlock.Param("id"))}, handlers...)
	}
	engine := gin.New()
	engine.GET("/greeting/:id", handlers...)
	return engine
}

func echoHandler(locks *core.Locker) http.Handler {
	var middlewares []echo.MiddlewareFunc
	if locks != nil {
		middlewares = append(middlewares, echolock.Middleware(locks, echolock.Param("id")))
	}
	e := echo.New()
	e.GET("/greeting/:id", func(c echo.Context) error { return c.String(http.StatusOK, greeting) }, middlewares...)
	return e
}
