package ginlock_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/ginlock"
)

// errFunds is an error of a handler.
var errFunds = errors.New("no funds")

// answers are what handlers do with c.
var answers = map[string]gin.HandlerFunc{
	"nothing":                func(*gin.Context) {},
	"a status":               func(c *gin.Context) { c.Status(http.StatusAccepted) },
	"a status and headers":   func(c *gin.Context) { c.Header("Location", "/1"); c.Status(http.StatusCreated) },
	"a status, now":          func(c *gin.Context) { c.Status(http.StatusAccepted); c.Writer.WriteHeaderNow() },
	"a text":                 func(c *gin.Context) { c.String(http.StatusCreated, "paid") },
	"JSON":                   func(c *gin.Context) { c.JSON(http.StatusOK, gin.H{"paid": true}) },
	"two texts":              func(c *gin.Context) { c.String(http.StatusOK, "paid"); c.String(http.StatusTeapot, "twice") },
	"no content":             func(c *gin.Context) { c.JSON(http.StatusNoContent, nil) },
	"no status":              func(c *gin.Context) { c.JSON(-1, "paid") },
	"a redirection":          func(c *gin.Context) { c.Redirect(http.StatusSeeOther, "/there") },
	"AbortWithStatus":        func(c *gin.Context) { c.AbortWithStatus(http.StatusPaymentRequired) },
	"AbortWithStatusJSON":    func(c *gin.Context) { c.AbortWithStatusJSON(http.StatusPaymentRequired, "no funds") },
	"AbortWithError":         func(c *gin.Context) { _ = c.AbortWithError(http.StatusPaymentRequired, errFunds) },
	"an error alone":         func(c *gin.Context) { _ = c.Error(errFunds) },
	"an error and a status":  func(c *gin.Context) { _ = c.Error(errFunds); c.Status(http.StatusPaymentRequired) },
	"an error and an answer": func(c *gin.Context) { _ = c.Error(errFunds); c.String(http.StatusOK, "paid") },
	"pieces": func(c *gin.Context) {
		c.Stream(func(w io.Writer) bool { _, _ = io.WriteString(w, "paid"); return false })
	},
	"a flush":                 func(c *gin.Context) { c.Status(http.StatusAccepted); c.Writer.Flush() },
	"a copy":                  func(c *gin.Context) { _, _ = io.Copy(c.Writer, strings.NewReader("paid")) },
	"a string":                func(c *gin.Context) { _, _ = c.Writer.WriteString("paid") },
	"a status after the body": func(c *gin.Context) { c.String(http.StatusOK, "paid"); c.Status(http.StatusTeapot) },
	"a status after the status, now": func(c *gin.Context) {
		c.Writer.WriteHeaderNow()
		c.Status(http.StatusTeapot)
	},
	"two statuses":     func(c *gin.Context) { c.Status(http.StatusTeapot); c.Status(http.StatusAccepted) },
	"a status, then 0": func(c *gin.Context) { c.Status(http.StatusAccepted); c.Status(0) },
	"another route":    func(c *gin.Context) { c.Request.URL.Path = "/elsewhere"; c.Request.Method = "GET"; hand(c) },
}

// hand routes a request again with engine.HandleContext.
func hand(c *gin.Context) { c.MustGet("engine").(*gin.Engine).HandleContext(c) }

// A middleware outside, a middleware behind Idempotent, and the client see the same
// answer as without Idempotent.
func TestOuterMiddlewareSeesTheSameAnswer(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t).Locker
	for name, handler := range answers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key := ginlock.Literal(name)
			if got, want := seenOutside(t, ginlock.Idempotent(locks, key), handler), seenOutside(t, handler); got != want {
				t.Errorf("%s\nwithout Idempotent %s", got, want)
			}
		})
	}
}

// seenOutside serves a handler behind middlewares, and returns what a middleware
// outside, a middleware right before the handler, and the client see.
func seenOutside(t *testing.T, handlers ...gin.HandlerFunc) string {
	t.Helper()
	seen := make(chan string, 1)
	var inside string
	engine := gin.New()
	outer := func(c *gin.Context) {
		w, r := c.Writer, c.Request
		c.Set("engine", engine)
		c.Header("X-Outer", "1")
		c.Header("Date", "today")
		c.Next()
		seen <- fmt.Sprint(c.Writer.Status(), c.Writer.Size(), c.Writer.Written(), c.Writer.Header(),
			len(c.Errors), c.IsAborted(), c.Writer == w, c.Request == r, "; ", inside)
	}
	inner := func(c *gin.Context) {
		c.Next()
		inside = fmt.Sprint(c.Writer.Status(), c.Writer.Size(), c.Writer.Written())
	}
	engine.GET("/elsewhere", func(c *gin.Context) { c.String(http.StatusOK, "elsewhere") })
	last := len(handlers) - 1
	engine.POST("/", slices.Concat([]gin.HandlerFunc{outer}, handlers[:last], []gin.HandlerFunc{inner, handlers[last]})...)
	server := newServer(t, engine)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := server.Client().Transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	return fmt.Sprint(<-seen, "; ", answer.StatusCode, answer.Header, string(body), err)
}
