package nethttplock_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/nethttplock"
)

// refusal is a refused request: the middleware, and what happens before the request.
type refusal struct {
	key     nethttplock.Key
	opts    []core.Option
	prepare func(t *testing.T, e *env)
	around  func(e *env, next http.Handler) http.Handler
	request func(r *http.Request)

	status     int
	code       string // empty: no body
	retryAfter string
}

// env is the input of a refusal's prepare function.
type env struct {
	locks   *core.Locker
	proxy   *redistest.Proxy
	rdb     *redis.Client
	waiting chan struct{} // receives a value when a request waits
}

// statusError is an error of a key with its own status.
type statusError int

func (e statusError) Error() string   { return theKey }
func (e statusError) StatusCode() int { return int(e) }

func failing(err error) nethttplock.Key {
	return core.KeyOf(func(*http.Request) (string, error) { return "", err })
}

// Every refusal of a request.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	taken := func(t *testing.T, e *env) {
		adaptertest.Hold(t, e.rdb)
		// This opens the connection, so that a short wait does not include it.
		if _, err := e.locks.TryLock(t.Context(), theKey); !errors.Is(err, core.ErrBusy) {
			t.Fatalf("the key is not taken: %v", err)
		}
	}
	for name, test := range map[string]refusal{
		"busy": {
			key: literal, prepare: taken,
			status: 409, code: "busy", retryAfter: "1",
		},
		"busy, another hint": {
			key: literal, prepare: taken, opts: []core.Option{core.WithRetryAfter(1500 * time.Millisecond)},
			status: 409, code: "busy", retryAfter: "2",
		},
		"wait timeout": {
			key: literal, prepare: taken, opts: []core.Option{core.WithWait(time.Second)},
			status: 409, code: "wait_timeout", retryAfter: "1",
		},
		"no key": {
			key:    nethttplock.Header("X-Account"),
			status: 400, code: "no_key",
		},
		"invalid key": {
			key:     nethttplock.Header("X-Account"),
			request: func(r *http.Request) { r.Header["X-Account"] = []string{theKey, theKey} },
			status:  400, code: "invalid_key",
		},
		"body too large": {
			key: nethttplock.JSONField("id"), opts: []core.Option{core.WithMaxBody(8)},
			status: 413, code: "body_too_large",
		},
		"key error": {
			key:    failing(errors.New(theKey)),
			status: 500, code: "key_error",
		},
		"key error with a status": {
			key:    failing(statusError(403)),
			status: 403, code: "key_error",
		},
		"key error with a success": {
			key:    failing(statusError(204)),
			status: 500, code: "key_error",
		},
		"unavailable": {
			key: literal, prepare: func(_ *testing.T, e *env) { e.proxy.Refuse(true) },
			status: 503, code: "unavailable", retryAfter: "1",
		},
		"unavailable, with a wait": {
			key: literal, opts: []core.Option{core.WithWait(20 * time.Millisecond)},
			prepare: func(_ *testing.T, e *env) { e.proxy.Refuse(true) },
			status:  503, code: "unavailable", retryAfter: "1",
		},
		"closing": {
			key: literal, prepare: func(t *testing.T, e *env) {
				if err := e.locks.Close(t.Context()); err != nil {
					t.Error(err)
				}
			},
			status: 503, code: "closing", retryAfter: "1",
		},
		"deadline": {
			key: literal, prepare: taken, opts: []core.Option{core.WithWait(time.Minute)},
			around: func(_ *env, next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					ctx, cancel := context.WithTimeout(r.Context(), 20*time.Millisecond)
					defer cancel()
					next.ServeHTTP(w, r.WithContext(ctx))
				})
			},
			status: 503, code: "deadline", retryAfter: "1",
		},
		"canceled": {
			key: literal, prepare: taken, opts: []core.Option{core.WithWait(time.Minute)},
			around: func(e *env, next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					ctx, cancel := context.WithCancel(r.Context())
					go func() {
						<-e.waiting
						cancel()
					}()
					next.ServeHTTP(w, r.WithContext(ctx))
				})
			},
			status: 499,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testRefusal(t, test)
		})
	}
}

func testRefusal(t *testing.T, test refusal) {
	t.Helper()
	redisServer := redistest.Reuse(t)
	e := &env{
		proxy:   redistest.NewProxy(t, redisServer.Addr()),
		rdb:     redisServer.Client(t),
		waiting: make(chan struct{}, 1),
	}
	e.locks = core.Must(core.New(e.proxy.Client(t), adaptertest.LongCommands(core.WithObserver(func(event core.Event) {
		if event.Kind == core.Waiting {
			e.waiting <- struct{}{}
		}
	}))...))
	adaptertest.CloseAfter(t, e.locks)
	t.Cleanup(func() { e.proxy.Refuse(false) })
	ran := false
	h := nethttplock.Middleware(e.locks, test.key, test.opts...)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		ran = true
	}))
	if test.around != nil {
		h = test.around(e, h)
	}
	if test.prepare != nil {
		test.prepare(t, e)
	}
	server := newServer(t, h)
	r := newRequest(t, http.MethodPost, server.URL, strings.NewReader(`{"id":"`+theKey+`"}`))
	if test.request != nil {
		test.request(r)
	}

	got := do(t, server, r)

	if ran {
		t.Error("the handler has run")
	}
	if got.status != test.status || got.header.Get("Retry-After") != test.retryAfter {
		t.Errorf("status %d, Retry-After %q", got.status, got.header.Get("Retry-After"))
	}
	if got.header.Get("Cache-Control") != "no-store" {
		t.Errorf("header %v", got.header)
	}
	if test.code == "" {
		if got.body != "" {
			t.Errorf("body %q", got.body)
		}
		return
	}
	var problem struct {
		Status int
		Code   string
	}
	if err := json.Unmarshal([]byte(got.body), &problem); err != nil || problem.Code != test.code || problem.Status != test.status {
		t.Errorf("body %s: %v", got.body, err)
	}
	if got.header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("Content-Type %q", got.header.Get("Content-Type"))
	}
	if strings.Contains(got.body, theKey) || strings.Contains(got.body, adaptertest.ForeignToken) {
		t.Errorf("the answer contains the key or the token: %s", got.body)
	}
}

// If the error handler does not answer, the middleware does.
func TestErrorHandler(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		handle func(http.ResponseWriter, *http.Request, error)
		status int
		body   string
	}{
		"its own": {func(w http.ResponseWriter, _ *http.Request, err error) {
			refusal, _ := core.RefusalOf(err)
			http.Error(w, refusal.Code, http.StatusLocked)
		}, 423, "no_key\n"},
		"default":        {nethttplock.WriteError, 400, `"code":"no_key"`},
		"nothing":        {func(http.ResponseWriter, *http.Request, error) {}, 400, `"code":"no_key"`},
		"without status": {func(w http.ResponseWriter, _ *http.Request, _ error) { _, _ = w.Write([]byte("mine")) }, 400, "mine"},
		"the request": {func(w http.ResponseWriter, r *http.Request, err error) {
			if !errors.Is(err, core.ErrNoKey) {
				t.Errorf("error %v", err)
			}
			w.WriteHeader(http.StatusTeapot)
			_, _ = w.Write([]byte(r.URL.Path))
		}, 418, "/path"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mw := nethttplock.Middleware(adaptertest.UnusedLocker(t), nethttplock.Header("X-Account"), nethttplock.WithErrorHandler(test.handle))
			server := newServer(t, mw(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the handler has run") })))
			got := do(t, server, newRequest(t, http.MethodGet, server.URL+"/path", nil))
			if got.status != test.status || !strings.Contains(got.body, test.body) {
				t.Errorf("%+v", got)
			}
		})
	}
}
