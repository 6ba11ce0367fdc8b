package ginlock_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/ginlock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
)

// A refused request is aborted and answered, and its error is in c.Errors for
// loggers. The error contains neither the key nor the token.
func TestRefusalAbortsAndIsInErrors(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	release := locks.Hold(theKey)
	defer release()
	r := gin.New()
	r.Use(func(c *gin.Context) {
		c.Next()
		last := c.Errors.Last()
		if last == nil || !errors.Is(last, core.ErrBusy) || !last.IsType(gin.ErrorTypePrivate) || len(c.Errors) != 1 {
			t.Errorf("errors %v", c.Errors)
		}
		if strings.Contains(c.Errors.String(), theKey) {
			t.Errorf("the error contains the key: %v", c.Errors)
		}
		if !c.IsAborted() || !c.Writer.Written() || c.Writer.Status() != http.StatusConflict {
			t.Errorf("aborted %v, written %v, status %d", c.IsAborted(), c.Writer.Written(), c.Writer.Status())
		}
	})
	r.GET("/", ginlock.Middleware(locks.Locker, literal), mustNotRun(t), mustNotRun(t))
	w := call(t, r, http.MethodGet, "/")
	if w.Code != http.StatusConflict || w.Header().Get("Retry-After") != "1" ||
		w.Header().Get("Content-Type") != "application/problem+json" || !strings.Contains(w.Body.String(), `"code":"busy"`) {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
}

// If the error handler does not answer, the middleware does. The handler of the
// request never runs.
func TestErrorHandler(t *testing.T) {
	t.Parallel()
	const problem = `"code":"no_key"`
	for name, test := range map[string]struct {
		handle func(*gin.Context, error)
		status int
		body   string
	}{
		"nothing":      {func(*gin.Context, error) {}, 400, problem},
		"default":      {ginlock.WriteError, 400, problem},
		"header alone": {func(c *gin.Context, _ error) { c.Header("X-Refused", "1") }, 400, problem},
		"JSON": {func(c *gin.Context, err error) {
			refusal, _ := core.RefusalOf(err)
			c.JSON(http.StatusLocked, gin.H{"why": refusal.Code})
		}, 423, `{"why":"no_key"}`},
		"abort with JSON": {func(c *gin.Context, _ error) {
			c.AbortWithStatusJSON(http.StatusTeapot, gin.H{"tea": true})
		}, 418, `{"tea":true}`},
		"abort with a status": {func(c *gin.Context, _ error) { c.AbortWithStatus(http.StatusLocked) }, 423, ""},
		"abort with an error": {func(c *gin.Context, err error) { _ = c.AbortWithError(http.StatusLocked, err) }, 423, ""},
		"status alone":        {func(c *gin.Context, _ error) { c.Status(http.StatusLocked) }, 423, ""},
		"no content":          {func(c *gin.Context, _ error) { c.JSON(http.StatusNoContent, nil) }, 204, ""},
		"redirect":            {func(c *gin.Context, _ error) { c.Redirect(http.StatusSeeOther, "/wait") }, 303, "<a href=\"/wait\">See Other</a>.\n\n"},
		"success on purpose":  {func(c *gin.Context, _ error) { c.String(http.StatusOK, "mine") }, 200, "mine"},
		"JSON without status": {func(c *gin.Context, _ error) { c.JSON(-1, "mine") }, 400, `"mine"`},
		"Write":               {func(c *gin.Context, _ error) { _, _ = c.Writer.Write([]byte("mine")) }, 400, "mine"},
		"WriteString":         {func(c *gin.Context, _ error) { _, _ = c.Writer.WriteString("mine") }, 400, "mine"},
		"WriteHeaderNow":      {func(c *gin.Context, _ error) { c.Writer.WriteHeaderNow() }, 400, ""},
		"Flush":               {func(c *gin.Context, _ error) { c.Writer.Flush() }, 400, ""},
		"http.Error":          {func(c *gin.Context, _ error) { http.Error(c.Writer, "mine", http.StatusLocked) }, 423, "mine\n"},
		"ResponseController":  {func(c *gin.Context, _ error) { _ = http.NewResponseController(c.Writer).Flush() }, 400, ""},
		"the writer's status": {func(c *gin.Context, _ error) {
			c.JSON(c.Writer.Status(), "mine")
		}, 400, `"mine"`},
		"the writer's status, once set": {func(c *gin.Context, _ error) {
			c.Status(http.StatusLocked)
			c.JSON(c.Writer.Status(), "mine")
		}, 423, `"mine"`},
		"the rest of the chain": {func(c *gin.Context, _ error) { c.Next() }, 400, problem},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := gin.New()
			r.GET("/", ginlock.Middleware(adaptertest.UnusedLocker(t), ginlock.Header("X-Account"),
				ginlock.WithErrorHandler(func(c *gin.Context, err error) {
					if !errors.Is(err, core.ErrNoKey) || !errors.Is(c.Errors.Last(), err) || !c.IsAborted() {
						t.Errorf("error %v, last %v, aborted %v", err, c.Errors.Last(), c.IsAborted())
					}
					test.handle(c, err)
				})), mustNotRun(t))
			w := call(t, r, http.MethodGet, "/")
			exact := !strings.HasPrefix(test.body, `"code"`)
			if w.Code != test.status || !strings.Contains(w.Body.String(), test.body) || exact && w.Body.String() != test.body {
				t.Errorf("%d %q", w.Code, w.Body)
			}
		})
	}
}

// After the error handler c.Writer is the previous one, even after a panic. Then
// recovery answers.
func TestErrorHandlerPanics(t *testing.T) {
	t.Parallel()
	r := gin.New()
	r.Use(gin.CustomRecoveryWithWriter(nil, func(c *gin.Context, _ any) {
		c.AbortWithStatus(http.StatusBadGateway)
	}))
	r.Use(func(c *gin.Context) {
		before := c.Writer
		defer func() {
			if c.Writer != before {
				t.Errorf("c.Writer is a %T", c.Writer)
			}
		}()
		c.Next()
	})
	r.GET("/", ginlock.Middleware(adaptertest.UnusedLocker(t), ginlock.Header("X-Account"),
		ginlock.WithErrorHandler(func(*gin.Context, error) { panic("crash") })), mustNotRun(t))
	if w := call(t, r, http.MethodGet, "/"); w.Code != http.StatusBadGateway || w.Body.Len() != 0 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// An error handler may route the request again. Only the answer of the other route is
// sent.
func TestErrorHandlerReroutes(t *testing.T) {
	t.Parallel()
	r := gin.New()
	r.GET("/", ginlock.Middleware(adaptertest.UnusedLocker(t), ginlock.Header("X-Account"),
		ginlock.WithErrorHandler(func(c *gin.Context, _ error) {
			c.Request.URL.Path = "/refused"
			r.HandleContext(c)
		})), mustNotRun(t))
	r.GET("/refused", func(c *gin.Context) { c.String(http.StatusLocked, "refused") })
	if w := call(t, r, http.MethodGet, "/"); w.Code != http.StatusLocked || w.Body.String() != "refused" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// An error handler can use the server's own writer, and hijack the connection.
func TestErrorHandlerHijacks(t *testing.T) {
	t.Parallel()
	r := gin.New()
	r.GET("/", ginlock.Middleware(adaptertest.UnusedLocker(t), ginlock.Header("X-Account"),
		ginlock.WithErrorHandler(func(c *gin.Context, _ error) {
			if err := http.NewResponseController(c.Writer).SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Errorf("SetReadDeadline: %v", err)
			}
			teapot(t, c.Writer)
		})), mustNotRun(t))
	if status, _ := send(t, newServer(t, r), http.MethodGet, "/", "", ""); status != http.StatusTeapot {
		t.Errorf("status %d", status)
	}
}

// teapot hijacks the connection and answers 418.
func teapot(t *testing.T, w http.Hijacker) {
	t.Helper()
	conn, rw, err := w.Hijack()
	if err != nil {
		t.Errorf("Hijack: %v", err)
		return
	}
	defer func() { _ = conn.Close() }()
	_, _ = fmt.Fprint(rw, "HTTP/1.1 418 I'm a teapot\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
	_ = rw.Flush()
}

// A middleware before the lock that renders c.Errors keeps the answer of the lock, or
// answers instead of it.
func TestRenderingErrorsOutside(t *testing.T) {
	t.Parallel()
	leaveIt := ginlock.WithErrorHandler(func(c *gin.Context, err error) {
		refusal, _ := core.RefusalOf(err)
		c.Status(refusal.HTTP)
	})
	for name, test := range map[string]struct {
		opts []core.Option
		body string
	}{
		"the lock's answer": {nil, `"code":"no_key"`},
		"its own":           {[]core.Option{leaveIt}, `{"error":"refused"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := gin.New()
			r.Use(func(c *gin.Context) {
				c.Next()
				if len(c.Errors) > 0 && !c.Writer.Written() {
					c.JSON(-1, gin.H{"error": "refused"})
				}
			})
			r.GET("/", ginlock.Middleware(adaptertest.UnusedLocker(t), ginlock.Header("X-Account"), test.opts...), mustNotRun(t))
			w := call(t, r, http.MethodGet, "/")
			if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), test.body) || strings.Count(w.Body.String(), "{") != 1 {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
}
