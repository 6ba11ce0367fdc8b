package core_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A client replaces the lock by a list. The lease is lost in time, other callers get a fault,
// and the list does not change.
//
//faults:row 26: the key has another type
func TestKeyThatBecomesAList(t *testing.T) {
	t.Parallel()
	server := redistest.Reuse(t)
	admin := server.Client(t)
	locks := newLocker(t, server.Client(t), core.WithTTL(time.Second), core.WithFencing(true))
	lease := lock(t, locks, "k")
	do(t, admin, "DEL", "reqlock:k")
	do(t, admin, "RPUSH", "reqlock:k", "theirs")

	suite.AwaitClosed(t, "the lease is lost", lease.Context().Done())
	wantError(t, context.Cause(lease.Context()), core.ErrLost)
	for what, err := range map[string]error{
		"a try":     errorOf(newLocker(t, server.Client(t)).TryLock(t.Context(), "k")),
		"a waiter":  errorOf(newLocker(t, server.Client(t), core.WithWait(time.Hour)).Lock(t.Context(), "k")),
		"a release": lease.Release(t.Context()),
	} {
		if what != "a release" {
			wantError(t, err, core.ErrUnavailable)
			var reply redis.Error
			if !errors.As(err, &reply) || !strings.HasPrefix(reply.Error(), "WRONGTYPE") {
				t.Errorf("%s: %v", what, err)
			}
		}
		if err == nil || errors.Is(err, core.ErrBusy) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if got := admin.LRange(t.Context(), "reqlock:k", 0, -1).Val(); len(got) != 1 || got[0] != "theirs" {
		t.Errorf("the list is now %q", got)
	}
	do(t, admin, "DEL", "reqlock:k")
	release(t, lock(t, locks, "k"))
}

// errorOf returns the error of a call that returns a lease.
func errorOf(_ *core.Lease, err error) error { return err }
