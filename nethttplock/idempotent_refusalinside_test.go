package nethttplock_test

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/nethttplock"
)

// A lockedStep is a handler that stands behind a lock inside Idempotent. The middleware of a
// test chooses for each pass whether the lock refuses it.
type lockedStep struct {
	locks   *core.Locker
	next    http.Handler
	charge  http.HandlerFunc
	refusal *error
}

// pass lets a request pass the lock, which refuses it with the error. nil lets it run.
func (s lockedStep) pass(w http.ResponseWriter, r *http.Request, refusal error) {
	*s.refusal = refusal
	s.next.ServeHTTP(w, r)
}

// aside is pass on a writer of its own.
func (s lockedStep) aside(r *http.Request, refusal error) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.pass(w, r, refusal)
	return w
}

// A compressedWriter compresses the body.
type compressedWriter struct {
	http.ResponseWriter
	to io.Writer
}

// Write compresses p.
func (w compressedWriter) Write(p []byte) (int, error) { return w.to.Write(p) }

// cancelKey is the key of the function that ends the context of a request.
type cancelKey struct{}

// If a lock inside Idempotent refuses a request, the key is free, unless the request ends in
// another way, or has run before. The status of the refusal does not matter.
func TestRefusalInsideIdempotent(t *testing.T) {
	t.Parallel()
	statuses := []int{423, 503}
	if suite.IsFull() {
		statuses = append(statuses, 409, 429)
	}
	for _, busy := range statuses {
		testRefusalInside(t, busy)
	}
}

// testRefusalInside is TestRefusalInsideIdempotent for a WithBusyStatus.
func testRefusalInside(t *testing.T, busy int) {
	t.Helper()
	const runs, replays, notKept, unknown = 2, 1, 0, -1 // what a copy does; the first two are passes
	broken := errors.New("the key failed")
	fallback := nethttplock.WithErrorHandler(func(w http.ResponseWriter, _ *http.Request, _ error) {
		w.WriteHeader(http.StatusCreated)
	})
	reject := func(status int) core.Option {
		return nethttplock.WithErrorHandler(func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(status) })
	}
	locked := nethttplock.WithErrorHandler(func(w http.ResponseWriter, _ *http.Request, _ error) { _, _ = io.WriteString(w, "locked") })
	envelope := nethttplock.WithErrorHandler(func(w http.ResponseWriter, _ *http.Request, err error) {
		refusal, _ := core.RefusalOf(err)
		w.WriteHeader(refusal.HTTP)
		_, _ = io.WriteString(w, refusal.Detail)
	})
	logged := nethttplock.WithErrorHandler(func(w http.ResponseWriter, r *http.Request, err error) {
		nethttplock.WriteError(struct{ http.ResponseWriter }{w}, r, err)
	})
	wrapped := nethttplock.WithErrorHandler(func(w http.ResponseWriter, r *http.Request, err error) {
		nethttplock.WriteError(w, r, err)
	})
	simply := func(refusal error) func(http.ResponseWriter, *http.Request, lockedStep) {
		return func(w http.ResponseWriter, r *http.Request, s lockedStep) { s.pass(w, r, refusal) }
	}
	// during is a part of the request, on a writer of its own, that is refused. Something else
	// answers meanwhile.
	during := func(answer func(w http.ResponseWriter)) func(http.ResponseWriter, *http.Request, lockedStep) {
		return func(w http.ResponseWriter, r *http.Request, s lockedStep) {
			key := core.KeyOf(func(*http.Request) (string, error) { answer(w); return theKey, nil })
			nethttplock.Middleware(s.locks, key)(http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(), r)
		}
	}
	gone := func(opts ...core.Option) func(http.ResponseWriter, *http.Request, lockedStep) {
		return func(w http.ResponseWriter, r *http.Request, s lockedStep) {
			ctx, cancel := context.WithCancel(r.Context())
			key := core.KeyOf(func(*http.Request) (string, error) { w.WriteHeader(499); cancel(); return "account", nil })
			nethttplock.Middleware(s.locks, key, opts...)(http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(), r.WithContext(ctx))
		}
	}
	ended := func(r *http.Request) *http.Request {
		ctx, cancel := context.WithDeadline(r.Context(), time.Now())
		t.Cleanup(cancel)
		return r.WithContext(ctx)
	}
	type middleware = func(w http.ResponseWriter, r *http.Request, s lockedStep)
	for name, test := range map[string]struct {
		middleware middleware
		charge     http.HandlerFunc // nil answers 201
		opts       []core.Option
		free       bool // with WithFreeOnFailure
		uncertain  bool // with a WithUnknown that is true for the status of the refusal
		small      bool // with a WithMaxAnswer of 100
		want       int
	}{
		"busy":         {middleware: simply(core.ErrBusy), want: runs},
		"no key":       {middleware: simply(core.ErrNoKey), want: runs},
		"a failed key": {middleware: simply(broken), want: runs},
		"a client that has gone": {middleware: func(w http.ResponseWriter, r *http.Request, s lockedStep) {
			ctx, cancel := context.WithCancel(r.Context())
			cancel()
			s.pass(w, r.WithContext(ctx), nil)
		}, want: runs},
		"an error handler, 409":         {middleware: simply(core.ErrBusy), opts: []core.Option{reject(409)}, want: runs},
		"an error handler, 400":         {middleware: simply(core.ErrBusy), opts: []core.Option{reject(400)}, want: runs},
		"an error handler, 500":         {middleware: simply(core.ErrBusy), opts: []core.Option{reject(500)}, want: unknown},
		"an error handler, 201":         {middleware: simply(core.ErrBusy), opts: []core.Option{fallback}, want: replays},
		"an error handler, envelope":    {middleware: simply(core.ErrBusy), opts: []core.Option{envelope}, want: runs},
		"an error handler, WriteError":  {middleware: simply(broken), opts: []core.Option{wrapped}, want: runs},
		"an error handler, hidden":      {middleware: simply(core.ErrNoKey), opts: []core.Option{logged}, want: runs},
		"an error handler, FreeOnFail.": {middleware: simply(core.ErrBusy), opts: []core.Option{reject(500)}, free: true, want: runs},
		"a retry that runs": {middleware: func(w http.ResponseWriter, r *http.Request, s lockedStep) {
			s.aside(r, core.ErrBusy)
			s.pass(w, r, nil)
		}, want: replays},
		"a retry that is refused as well": {middleware: func(w http.ResponseWriter, r *http.Request, s lockedStep) {
			s.aside(r, core.ErrBusy)
			s.pass(w, r, broken)
		}, want: runs},
		"a retry after a 502 that is refused": {middleware: func(w http.ResponseWriter, r *http.Request, s lockedStep) {
			s.aside(r, nil)
			s.pass(w, r, core.ErrBusy)
		}, charge: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }, want: unknown},
		"a retry after a 502 that is refused, and a 503": {middleware: func(w http.ResponseWriter, r *http.Request, s lockedStep) {
			s.aside(r, nil)
			s.aside(r, core.ErrBusy)
			w.WriteHeader(http.StatusServiceUnavailable)
		}, charge: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }, want: unknown},
		"a retry that fails, and a 503": {middleware: func(w http.ResponseWriter, r *http.Request, s lockedStep) {
			s.aside(r, core.ErrBusy)
			s.aside(r, nil)
			w.WriteHeader(http.StatusServiceUnavailable)
		}, charge: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }, want: unknown},
		"a fallback handler that fails with 503": {middleware: func(w http.ResponseWriter, r *http.Request, s lockedStep) {
			s.aside(r, core.ErrBusy)
			s.charge(w, r)
		}, charge: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }, want: unknown},
		"a panic that is recovered": {middleware: func(w http.ResponseWriter, r *http.Request, s lockedStep) {
			defer func() {
				_ = recover()
				w.WriteHeader(http.StatusServiceUnavailable)
			}()
			s.pass(w, r, nil)
		}, charge: func(http.ResponseWriter, *http.Request) { panic("charged, perhaps") }, want: unknown},
		"a second Idempotent that is uncertain": {middleware: func(w http.ResponseWriter, r *http.Request, s lockedStep) {
			inner := nethttplock.Idempotent(s.locks, byKey.Named("inner"), core.WithoutFingerprint())
			inner(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.pass(w, r, nil) })).ServeHTTP(w, r)
		}, charge: func(w http.ResponseWriter, r *http.Request) {
			attempt, _ := core.AttemptFromContext(r.Context())
			attempt.Decide(core.EndUnknown)
			w.WriteHeader(http.StatusServiceUnavailable)
		}, want: unknown},
		"an error handler, 423, and a fallback behind it": {
			middleware: func(w http.ResponseWriter, r *http.Request, s lockedStep) {
				s.pass(w, r, core.ErrBusy)
				s.charge(w, r)
			}, charge: func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "queued") },
			opts: []core.Option{reject(423)}, want: unknown,
		},
		"a retry that answers 503 itself": {middleware: func(w http.ResponseWriter, r *http.Request, s lockedStep) {
			s.aside(r, core.ErrBusy)
			s.pass(w, r, nil)
		}, charge: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }, want: unknown},
		"a timeout that the handler heeds": {middleware: func(w http.ResponseWriter, r *http.Request, s lockedStep) {
			ctx, cancel := context.WithCancel(r.Context())
			s.aside(r.WithContext(context.WithValue(ctx, cancelKey{}, cancel)), nil)
			w.WriteHeader(http.StatusServiceUnavailable)
		}, charge: func(_ http.ResponseWriter, r *http.Request) {
			r.Context().Value(cancelKey{}).(context.CancelFunc)()
		}, want: unknown},
		"a retry that answers 423 itself": {middleware: func(w http.ResponseWriter, r *http.Request, s lockedStep) {
			s.aside(r, core.ErrBusy)
			s.pass(w, r, nil)
		}, charge: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusLocked) }, want: unknown},
		"a retry that runs behind the refusal": {middleware: func(w http.ResponseWriter, r *http.Request, s lockedStep) {
			s.pass(w, r, core.ErrBusy)
			s.pass(w, r, nil)
		}, charge: func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "paid") }, want: unknown},
		"a fallback handler": {middleware: func(w http.ResponseWriter, r *http.Request, s lockedStep) {
			s.aside(r, core.ErrBusy)
			s.charge(w, r)
		}, want: replays},
		"a fallback handler that fails": {middleware: func(w http.ResponseWriter, r *http.Request, s lockedStep) {
			s.aside(r, broken)
			s.charge(w, r)
		}, charge: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }, want: unknown},
		"a fallback handler that panics": {middleware: func(_ http.ResponseWriter, r *http.Request, s lockedStep) {
			s.aside(r, broken)
			panic(http.ErrAbortHandler)
		}, want: unknown},
		"a fallback handler behind the refusal": {middleware: func(w http.ResponseWriter, r *http.Request, s lockedStep) {
			s.pass(w, r, core.ErrBusy)
			s.charge(w, r)
		}, want: unknown},
		"a fallback handler behind the refusal that sets no status": {middleware: func(w http.ResponseWriter, r *http.Request, s lockedStep) {
			s.pass(w, r, core.ErrBusy)
			s.charge(w, r)
		}, charge: func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "paid") }, want: unknown},
		"a fallback handler behind the refusal that fails": {middleware: func(w http.ResponseWriter, r *http.Request, s lockedStep) {
			s.pass(w, r, core.ErrBusy)
			s.charge(w, r)
		}, charge: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }, want: unknown},
		"a fallback handler that answers as the refusal, uncertain": {middleware: func(w http.ResponseWriter, r *http.Request, s lockedStep) {
			s.aside(r, core.ErrBusy)
			s.charge(w, r)
		}, charge: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(busy) }, uncertain: true, want: unknown},
		"a fallback handler of a client that has gone": {middleware: func(w http.ResponseWriter, r *http.Request, s lockedStep) {
			ctx, cancel := context.WithCancel(r.Context())
			cancel()
			s.aside(r.WithContext(ctx), nil)
			s.charge(w, r)
		}, charge: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(499) }, want: unknown},
		"an answer, and then a refusal": {middleware: func(w http.ResponseWriter, r *http.Request, s lockedStep) {
			s.charge(w, r)
			s.pass(w, r, core.ErrBusy)
		}, want: replays},
		"two refusals": {middleware: func(w http.ResponseWriter, r *http.Request, s lockedStep) {
			s.pass(w, r, core.ErrNoKey)
			s.aside(r, core.ErrBusy)
		}, want: runs},
		"an error handler that fails, and another refusal": {middleware: func(w http.ResponseWriter, r *http.Request, s lockedStep) {
			nethttplock.Middleware(s.locks, literal, reject(502))(http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(), r)
			s.pass(w, r, core.ErrBusy)
		}, want: unknown},
		"a lock in a lock": {middleware: func(w http.ResponseWriter, r *http.Request, s lockedStep) {
			outer := nethttplock.Middleware(s.locks, nethttplock.Literal("outer"))
			outer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.pass(w, r, broken) })).ServeHTTP(w, r)
		}, want: runs},
		"a lock in a lock, after one that ran": {middleware: func(w http.ResponseWriter, r *http.Request, s lockedStep) {
			outer := nethttplock.Middleware(s.locks, nethttplock.Literal("outer"))
			outer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				s.aside(r, nil)
				s.pass(w, r, broken)
			})).ServeHTTP(w, r)
		}, want: unknown},
		"a copy of the refusal": {middleware: func(w http.ResponseWriter, r *http.Request, s lockedStep) {
			w.WriteHeader(s.aside(r, core.ErrNoKey).Code)
		}, want: runs},
		"a second Idempotent": {middleware: func(w http.ResponseWriter, r *http.Request, s lockedStep) {
			inner := nethttplock.Idempotent(s.locks, byKey.Named("inner"), core.WithoutFingerprint())
			inner(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.pass(w, r, broken) })).ServeHTTP(w, r)
		}, want: runs},
		"a copy of the refusal, 500": {middleware: func(w http.ResponseWriter, r *http.Request, s lockedStep) {
			first := s.aside(r, broken)
			w.WriteHeader(first.Code)
			_, _ = w.Write(first.Body.Bytes())
		}, want: runs},
		"a copy of the refusal, 500, and more": {middleware: func(w http.ResponseWriter, r *http.Request, s lockedStep) {
			first := s.aside(r, broken)
			w.WriteHeader(first.Code)
			_, _ = w.Write(append(first.Body.Bytes(), "queued"...))
		}, free: true, want: unknown},
		"an error handler with a body, uncertain": {middleware: simply(core.ErrBusy), opts: []core.Option{locked}, uncertain: true, want: runs},
		"more refusals than are compared": {middleware: func(w http.ResponseWriter, r *http.Request, s lockedStep) {
			for range 20 {
				s.aside(r, core.ErrNoKey)
			}
			s.pass(w, r, broken)
		}, want: runs},
		"a refusal, 500, that is flushed": {middleware: func(w http.ResponseWriter, r *http.Request, s lockedStep) {
			s.pass(w, r, broken)
			_ = http.NewResponseController(w).Flush()
		}, want: runs},
		"a refusal that is flushed, and a fallback behind it": {middleware: func(w http.ResponseWriter, r *http.Request, s lockedStep) {
			s.pass(w, r, broken)
			_ = http.NewResponseController(w).Flush()
			_, _ = io.WriteString(w, "queued")
		}, free: true, want: unknown},
		"a refusal that is flushed in the middle": {middleware: func(w http.ResponseWriter, r *http.Request, s lockedStep) {
			first := s.aside(r, broken)
			w.WriteHeader(first.Code)
			_, _ = w.Write(first.Body.Next(10))
			_ = http.NewResponseController(w).Flush()
			_, _ = w.Write(first.Body.Bytes())
		}, want: runs},
		"a refusal that is longer than a record": {middleware: simply(core.ErrBusy), small: true, want: runs},
		"a refusal that is compressed": {middleware: func(w http.ResponseWriter, r *http.Request, s lockedStep) {
			compressed := gzip.NewWriter(w)
			defer func() { _ = compressed.Close() }()
			s.pass(compressedWriter{w, compressed}, r, core.ErrBusy)
		}, want: runs},
		"a deadline that sets 504 behind its refusal": {middleware: func(w http.ResponseWriter, r *http.Request, s lockedStep) {
			s.pass(w, ended(r), nil)
			w.WriteHeader(http.StatusGatewayTimeout) // as middleware.Timeout of chi
		}, want: runs},
		"a fallback handler behind the refusal, 504": {middleware: func(w http.ResponseWriter, r *http.Request, s lockedStep) {
			s.pass(w, r, core.ErrBusy)
			s.charge(w, r)
		}, charge: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGatewayTimeout) }, want: unknown},
		"an answer while a part is refused": {middleware: during(func(w http.ResponseWriter) { w.WriteHeader(http.StatusCreated) }), want: replays},
		"a failure while a part is refused": {middleware: during(func(w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) }), want: unknown},
		"a flushed answer while a part is refused": {middleware: during(func(w http.ResponseWriter) {
			_, _ = io.WriteString(w, "paid")
			_ = http.NewResponseController(w).Flush()
		}), want: notKept},
		"a 499 while a part of a client that has gone is refused":                      {middleware: gone(), want: unknown},
		"a 499 while a part of a client that has gone is refused, by an error handler": {middleware: gone(wrapped), want: unknown},
		"a failure, and then a refusal with its status": {middleware: func(w http.ResponseWriter, r *http.Request, s lockedStep) {
			w.WriteHeader(http.StatusInternalServerError)
			s.pass(w, r, broken)
		}, want: unknown},
		"a second Idempotent that replays": {middleware: func(w http.ResponseWriter, r *http.Request, s lockedStep) {
			inner := nethttplock.Idempotent(s.locks, byKey.Named("inner"), core.WithoutFingerprint())
			h := inner(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.pass(w, r, nil) }))
			h.ServeHTTP(httptest.NewRecorder(), r)
			h.ServeHTTP(httptest.NewRecorder(), r)
			s.pass(w, r, core.ErrBusy)
		}, want: unknown},
	} {
		t.Run(fmt.Sprint(busy, " ", name), func(t *testing.T) {
			t.Parallel()
			locks, rdb := adaptertest.Locker(t)
			locks = locks.With(core.WithBusyStatus(busy))
			adaptertest.Hold(t, rdb)
			var refusal error
			charges := 0
			charge := func(w http.ResponseWriter, r *http.Request) {
				charges++
				if test.charge != nil {
					test.charge(w, r)
					return
				}
				w.WriteHeader(http.StatusCreated)
			}
			key := core.KeyOf(func(*http.Request) (string, error) {
				if errors.Is(refusal, core.ErrBusy) {
					return theKey, nil
				}
				return "account", refusal
			})
			locked := nethttplock.Middleware(locks, key, test.opts...)(http.HandlerFunc(charge))
			step := lockedStep{locks, locked, charge, &refusal}
			opts := []core.Option{core.WithoutFingerprint()}
			if test.free {
				opts = append(opts, core.WithFreeOnFailure())
			}
			if test.small {
				opts = append(opts, core.WithMaxAnswer(100))
			}
			if test.uncertain {
				opts = append(opts, core.WithUnknown(func(f core.Failure) bool { return f.Status == busy }))
			}
			passes := 0
			h := nethttplock.Idempotent(locks, byKey, opts...)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				passes++
				test.middleware(w, r, step)
			}))
			func() {
				defer func() { _ = recover() }()
				adaptertest.Pay(t, h, "/", "key", "")
			}()
			var later *httptest.ResponseRecorder
			func() {
				defer func() { _ = recover() }()
				later = adaptertest.Pay(t, h, "/", "key", "")
			}()
			got := passes
			switch {
			case later == nil || passes != 1 || later.Header().Get("Idempotent-Replayed") != "":
			case test.want == notKept:
				wantCode(t, later, "completed_unreplayable")
				got = notKept
			default:
				wantCode(t, later, "outcome_unknown")
				got = unknown
			}
			if got != test.want {
				t.Errorf("%d passes, %d charges, and a copy gets %+v", passes, charges, later)
			}
		})
	}
}

// A try that still runs holds the lock for which another one is refused. It counts, and so does
// one that a timeout in between has given up.
func TestRefusalBesideATryThatRuns(t *testing.T) {
	t.Parallel()
	refused := func(w http.ResponseWriter, r *http.Request, locked http.Handler, _ func()) { locked.ServeHTTP(w, r) }
	timeout := func(w http.ResponseWriter, _ *http.Request, _ http.Handler, _ func()) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	for name, gaveUp := range map[string]func(w http.ResponseWriter, r *http.Request, locked http.Handler, end func()){
		"another try is refused": refused,
		"a timeout":              timeout,
		"another try is refused, and 503 when both have ended": func(w http.ResponseWriter, r *http.Request, locked http.Handler, end func()) {
			locked.ServeHTTP(httptest.NewRecorder(), r)
			end()
			w.WriteHeader(http.StatusServiceUnavailable)
		},
		"a timeout of a try that waits": func(w http.ResponseWriter, r *http.Request, _ http.Handler, end func()) {
			locks := locktest.New(t)
			free := locks.Hold(theKey)
			queued := nethttplock.Middleware(locks.Locker, literal, core.WithWait(time.Minute))(http.NotFoundHandler())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				queued.ServeHTTP(httptest.NewRecorder(), r.WithContext(context.WithoutCancel(r.Context())))
			}()
			locks.AwaitWaiting(theKey, 1)
			end()
			w.WriteHeader(http.StatusServiceUnavailable)
			t.Cleanup(func() { free(); <-ended })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks, _ := adaptertest.Locker(t)
			runs, end, ended := make(chan struct{}, 2), make(chan struct{}), make(chan struct{})
			finish := sync.OnceFunc(func() { close(end) })
			locked := nethttplock.Middleware(locks, literal)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				runs <- struct{}{}
				<-end
			}))
			h := nethttplock.Idempotent(locks, byKey)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				go func() {
					defer close(ended)
					locked.ServeHTTP(httptest.NewRecorder(), r)
				}()
				suite.Receive(t, "the first try runs", runs)
				gaveUp(w, r, locked, func() { finish(); <-ended })
			}))
			adaptertest.Pay(t, h, "/", "key", "")
			wantCode(t, adaptertest.Pay(t, h, "/", "key", ""), "outcome_unknown")
			finish()
			<-ended
		})
	}
}

// Goroutines of the handler may be refused after the handler has returned.
func TestLateRefusalsInsideIdempotent(t *testing.T) {
	t.Parallel()
	locks, rdb := adaptertest.Locker(t)
	adaptertest.Hold(t, rdb)
	locked := nethttplock.Middleware(locks, literal)(http.NotFoundHandler())
	var late sync.WaitGroup
	h := nethttplock.Idempotent(locks, byKey)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		late.Go(func() {
			<-r.Context().Done()
			for range 20 {
				locked.ServeHTTP(httptest.NewRecorder(), r)
			}
		})
		locked.ServeHTTP(w, r)
	}))
	for range 2 {
		wantCode(t, adaptertest.Pay(t, h, "/", "key", ""), "busy")
	}
	late.Wait()
}

// A brokenWriter is a writer of an outer middleware with a bug.
type brokenWriter struct{ http.ResponseWriter }

// Header panics.
func (brokenWriter) Header() http.Header { panic("a bug of an outer middleware") }

// A panic of the writer outside, before the handler runs, does not leave the key locked.
func TestPanicOfTheOuterWriterFreesTheKey(t *testing.T) {
	t.Parallel()
	locks, _ := adaptertest.Locker(t)
	h := nethttplock.Idempotent(locks, byKey)(http.NotFoundHandler())
	func() {
		defer func() { _ = recover() }()
		broken := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(brokenWriter{w}, r) })
		adaptertest.Pay(t, broken, "/", "key", "")
	}()
	if w := adaptertest.Pay(t, h, "/", "key", ""); w.Code != http.StatusNotFound {
		t.Errorf("the next request: %d %s", w.Code, w.Body)
	}
}
