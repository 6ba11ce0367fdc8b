package ginlock_test

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/ginlock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// If the authentication stands before the lock, a request without authentication
// neither takes the lock nor gets a 409.
func TestAuthentication(t *testing.T) {
	t.Parallel()
	auth := gin.BasicAuth(gin.Accounts{"ada": "secret"})
	for name, test := range map[string]struct {
		order  func(auth, lock gin.HandlerFunc) []gin.HandlerFunc
		status int
	}{
		"before the lock": {func(auth, lock gin.HandlerFunc) []gin.HandlerFunc { return []gin.HandlerFunc{auth, lock} }, 401},
		"behind the lock": {func(auth, lock gin.HandlerFunc) []gin.HandlerFunc { return []gin.HandlerFunc{lock, auth} }, 409},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks := locktest.New(t)
			release := locks.Hold("42")
			defer release()
			r := gin.New()
			r.Use(test.order(auth, ginlock.Middleware(locks.Locker, ginlock.Literal("42")))...)
			r.GET("/", mustNotRun(t))
			if w := call(t, r, http.MethodGet, "/"); w.Code != test.status {
				t.Errorf("status %d", w.Code)
			}
		})
	}
}

// Get finds the user of gin.BasicAuth.
func TestAuthenticatedUser(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	r := gin.New()
	r.GET("/", gin.BasicAuth(gin.Accounts{"ada": "secret"}),
		ginlock.Middleware(locks.Locker, ginlock.Get(gin.AuthUserKey).Named("user")),
		func(c *gin.Context) {
			lease, _ := core.LeaseFromContext(c)
			c.String(http.StatusOK, lease.Key())
		})
	w := httptest.NewRecorder()
	q := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	q.SetBasicAuth("ada", "secret")
	r.ServeHTTP(w, q)
	if w.Body.String() != "user:ada" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// cors does what gin-contrib/cors does with preflights and with answers.
func cors(c *gin.Context) {
	c.Header("Access-Control-Allow-Origin", "*")
	if c.Request.Method == http.MethodOptions {
		c.AbortWithStatus(http.StatusNoContent)
	}
}

// Before the lock, CORS answers preflights without the lock, and refusals have its
// header. Behind the lock neither holds.
func TestCORS(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		before    bool
		preflight int
		header    string
	}{
		"before the lock": {true, 204, "*"},
		"behind the lock": {false, 409, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks := locktest.New(t)
			release := locks.Hold(theKey)
			defer release()
			r := gin.New()
			if test.before {
				r.Use(cors)
			}
			r.Use(ginlock.Middleware(locks.Locker, literal))
			if !test.before {
				r.Use(cors)
			}
			r.POST("/", mustNotRun(t))
			if w := call(t, r, http.MethodOptions, "/"); w.Code != test.preflight {
				t.Errorf("preflight: status %d", w.Code)
			}
			w := call(t, r, http.MethodPost, "/")
			if w.Code != http.StatusConflict || w.Header().Get("Access-Control-Allow-Origin") != test.header {
				t.Errorf("%d %v", w.Code, w.Header())
			}
		})
	}
}

// A zipper is the c.Writer of a compressing middleware.
type zipper struct {
	gin.ResponseWriter
	zip *gzip.Writer
}

func (z zipper) Write(p []byte) (int, error) { return z.zip.Write(p) }

func (z zipper) WriteString(s string) (int, error) { return z.zip.Write([]byte(s)) }

// compress does what gin-contrib/gzip does.
func compress(c *gin.Context) {
	before := c.Writer
	zip := gzip.NewWriter(before)
	defer func() { _ = zip.Close() }()
	c.Header("Content-Encoding", "gzip")
	c.Writer = zipper{before, zip}
	c.Next()
	c.Writer = before
}

// Compression before the lock encodes all answers: of the handler, of the lock and of an
// error handler. Compression behind the lock encodes only the answers of the handler.
func TestCompression(t *testing.T) {
	t.Parallel()
	mine := ginlock.WithErrorHandler(func(c *gin.Context, _ error) { c.JSON(-1, gin.H{"mine": true}) })
	for name, test := range map[string]struct {
		before bool
		held   bool
		opts   []core.Option
		status int
		body   string
		zipped bool
	}{
		"before the lock":               {true, false, nil, 200, "done", true},
		"before the lock, refused":      {true, true, nil, 409, `"code":"busy"`, true},
		"before the lock, own answer":   {true, true, []core.Option{mine}, 409, `{"mine":true}`, true},
		"behind the lock":               {false, false, nil, 200, "done", true},
		"behind the lock, when refused": {false, true, nil, 409, `"code":"busy"`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks := locktest.New(t)
			if test.held {
				defer locks.Hold(theKey)()
			}
			r := gin.New()
			if test.before {
				r.Use(compress)
			}
			r.Use(ginlock.Middleware(locks.Locker, literal, test.opts...))
			if !test.before {
				r.Use(compress)
			}
			r.GET("/", ok)
			w := call(t, r, http.MethodGet, "/")
			var body io.Reader = w.Body
			if zipped := w.Header().Get("Content-Encoding") == "gzip"; zipped != test.zipped {
				t.Fatalf("header %v", w.Header())
			} else if zipped {
				unzip, err := gzip.NewReader(w.Body)
				if err != nil {
					t.Fatal(err)
				}
				body = unzip
			}
			text, err := io.ReadAll(body)
			if w.Code != test.status || !strings.Contains(string(text), test.body) || err != nil {
				t.Errorf("%d %s, %v", w.Code, text, err)
			}
		})
	}
}

// deadline sets a deadline of the request's context.
func deadline(d time.Duration) gin.HandlerFunc {
	return func(c *gin.Context) {
		ctx, cancel := context.WithTimeout(c.Request.Context(), d)
		defer cancel()
		c.Request = c.Request.WithContext(ctx)
		c.Next()
	}
}

// A deadline set before the lock ends the wait for it, and the handler. Set
// behind the lock it ends the handler.
func TestDeadlineEndsTheWaitAndTheHandler(t *testing.T) {
	t.Parallel()
	waitForDeadline := func(c *gin.Context) {
		<-c.Request.Context().Done()
		if cause := context.Cause(c.Request.Context()); !errors.Is(cause, context.DeadlineExceeded) {
			t.Errorf("cause %v", cause)
		}
		c.String(http.StatusGatewayTimeout, "late")
	}
	const short = time.Second // long enough to take the lock on a busy machine
	for name, test := range map[string]struct {
		held   bool
		before bool
		status int
		body   string
	}{
		"before the lock, waiting": {true, true, 503, `"code":"deadline"`},
		"before the lock, running": {false, true, 504, "late"},
		"behind the lock, running": {false, false, 504, "late"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks := locktest.New(t)
			if test.held {
				defer locks.Hold(theKey)()
			}
			r := gin.New()
			lock := ginlock.Middleware(locks.Locker, literal, core.WithWait(time.Minute))
			if test.before {
				r.Use(deadline(short), lock)
			} else {
				r.Use(lock, deadline(short))
			}
			r.GET("/", waitForDeadline)
			w := call(t, r, http.MethodGet, "/")
			if w.Code != test.status || !strings.Contains(w.Body.String(), test.body) {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
}

// http.TimeoutHandler around the engine answers before the handler returns, and the
// lock is held until the handler returns. TimeoutHandler also answers when the
// request's context ends; the test ends it in the handler.
func TestTimeoutHandler(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	end := make(chan struct{})
	r := gin.New()
	r.GET("/", ginlock.Middleware(locks.Locker, literal), func(*gin.Context) {
		leave()
		<-end
	})
	w := httptest.NewRecorder()
	http.TimeoutHandler(r, time.Minute, "").ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("status %d", w.Code)
	}
	if adaptertest.IsFree(t, locks.Locker) {
		t.Error("the handler runs, and the key is free")
	}
	close(end)
	suite.Eventually(t, "the key is free", func() bool { return adaptertest.IsFree(t, locks.Locker) })
}
