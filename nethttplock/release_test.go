package nethttplock_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/nethttplock"
)

// However a handler ends, its lock is held until then and free afterwards, and
// a panic passes through as it is.
//
//faults:row 35
func TestReleaseHoweverTheHandlerEnds(t *testing.T) {
	t.Parallel()
	crash := errors.New("crash")
	for name, test := range map[string]struct {
		end    func()
		panics any
		status int
	}{
		"returns":            {func() {}, nil, 200},
		"panics":             {func() { panic(crash) }, crash, 0},
		"aborts":             {func() { panic(http.ErrAbortHandler) }, http.ErrAbortHandler, 0},
		"ends its goroutine": {runtime.Goexit, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks, rdb := newLocker(t)
			panicked := make(chan any, 1)
			locked := nethttplock.Middleware(locks, literal)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				if !held(t, rdb) {
					t.Error("the handler runs, and the key is free")
				}
				test.end()
			}))
			server := newServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer func() {
					caught := recover()
					if held(t, rdb) {
						t.Error("the handler has ended, and the key is held")
					}
					panicked <- caught
					if caught != nil {
						panic(caught)
					}
				}()
				locked.ServeHTTP(w, r)
			}))
			if status := get(t, server); status != test.status {
				t.Errorf("status %d", status)
			}
			if caught := <-panicked; caught != test.panics {
				t.Errorf("panic %v", caught)
			}
		})
	}
}

// A client that goes does not end the lock: the handler does.
//
//faults:row 8, 36
func TestReleaseAfterTheClientHasGone(t *testing.T) {
	t.Parallel()
	locks, rdb := newLocker(t)
	running, gone, end := make(chan struct{}), make(chan struct{}), make(chan struct{})
	server := newServer(t, nethttplock.Middleware(locks, literal)(
		http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			close(running)
			<-r.Context().Done()
			close(gone)
			<-end
		})))
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	go func() {
		<-running // not as soon as the key is held: then the handler may not run at all
		leave()
	}()
	if answer, err := server.Client().Do(newRequest(t, http.MethodGet, server.URL, nil).WithContext(ctx)); err == nil {
		_ = answer.Body.Close()
		t.Fatal("the client got an answer")
	}
	<-gone
	if status := get(t, server); status != http.StatusConflict {
		t.Errorf("while the handler of the client that has gone runs, the next one gets %d", status)
	}
	if !held(t, rdb) {
		t.Error("the key is free, and the handler runs")
	}
	close(end)
	eventually(t, "the key is free", func() bool { return !held(t, rdb) })
}

// http.TimeoutHandler does not wait for its handler. Around the lock it leaves
// it alone; inside, it makes the lock end too early. It does not wait either when
// the request's context ends, which here is when the handler is known to run.
//
//faults:row 40 limit: both orders
func TestTimeoutHandler(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		stack         func(lock func(http.Handler) http.Handler, h http.Handler) http.Handler
		heldMeanwhile bool
	}{
		"around the lock": {func(lock func(http.Handler) http.Handler, h http.Handler) http.Handler {
			return http.TimeoutHandler(lock(h), time.Minute, "")
		}, true},
		"inside the lock": {func(lock func(http.Handler) http.Handler, h http.Handler) http.Handler {
			return lock(http.TimeoutHandler(h, time.Minute, ""))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks, rdb := newLocker(t)
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			end, ended := make(chan struct{}), make(chan struct{})
			stack := test.stack(nethttplock.Middleware(locks, literal), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				defer close(ended)
				leave()
				<-end
			}))
			w := httptest.NewRecorder()
			stack.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
			if w.Code != http.StatusServiceUnavailable {
				t.Errorf("status %d", w.Code)
			}
			if ctx.Err() == nil {
				t.Fatal("the handler has not run")
			}
			if held(t, rdb) != test.heldMeanwhile {
				t.Errorf("while the handler runs, the key is held: %v", !test.heldMeanwhile)
			}
			close(end)
			<-ended
			eventually(t, "the key is free", func() bool { return !held(t, rdb) })
		})
	}
}

// A lock that is lost ends the handler's context and leaves its answer alone.
//
//faults:row 13
func TestLostLease(t *testing.T) {
	t.Parallel()
	locks, rdb := newLocker(t, core.WithTTL(time.Second), core.WithWait(20*time.Second))
	server := newServer(t, nethttplock.Middleware(locks, literal)(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := rdb.Del(context.WithoutCancel(r.Context()), "reqlock:"+theKey).Err(); err != nil {
				t.Errorf("DEL: %v", err)
			}
			<-r.Context().Done()
			if cause := context.Cause(r.Context()); !errors.Is(cause, core.ErrLost) {
				t.Errorf("cause %v", cause)
			}
			w.WriteHeader(http.StatusCreated)
		})))
	if status := get(t, server); status != http.StatusCreated {
		t.Errorf("status %d", status)
	}
}
