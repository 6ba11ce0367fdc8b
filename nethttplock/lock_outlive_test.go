package nethttplock_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/nethttplock"
)

// endless replaces the context of a request by one that the server does not end, so
// that only the lock ends it.
func endless(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithoutCancel(r.Context())))
	})
}

// If a goroutine runs longer than its handler, its context ends with the lock, even
// if the request's own context does not end. It can then take a lock of its own.
func TestAGoroutineOutlivesItsHandler(t *testing.T) {
	t.Parallel()
	locks, rdb := adaptertest.Locker(t)
	returned, ended := make(chan struct{}), make(chan struct{})
	server := newServer(t, endless(nethttplock.Middleware(locks, literal)(
		http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			outer, _ := core.LeaseFromContext(r.Context())
			go func() {
				defer close(ended)
				<-returned
				if r.Context().Err() == nil {
					t.Error("the handler has returned, and the goroutine's context goes on")
				}
				if adaptertest.IsHeld(t, rdb) {
					t.Error("the handler has returned, and the key is held")
				}
				if _, err := locks.Lock(r.Context(), theKey); err == nil || err.Error() != "reqlock: the context had ended before the call: context canceled" {
					t.Errorf("a lock under that context: %v", err)
				}
				own, err := locks.Lock(context.WithoutCancel(r.Context()), theKey)
				if err != nil {
					t.Errorf("a lock of its own: %v", err)
					return
				}
				if own.Token() == outer.Token() || !adaptertest.IsHeld(t, rdb) {
					t.Error("the goroutine has the lock of the handler, which has ended")
				}
				if err := own.Release(t.Context()); err != nil {
					t.Errorf("release: %v", err)
				}
			}()
		}))))
	if status := get(t, server); status != http.StatusOK {
		t.Errorf("status %d", status)
	}
	suite.Eventually(t, "the key is free", func() bool { return !adaptertest.IsHeld(t, rdb) })
	close(returned)
	suite.AwaitClosed(t, "the goroutine ends", ended)
}
