package core_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// Shared leases count once a replica has acknowledged them, like any others.
func TestSharedLocksOnReplicas(t *testing.T) {
	onReplicated(t, func(t *testing.T, servers *replicated) {
		locks, other := newLocker(t, servers.connect(t), withReplica()...), newLocker(t, servers.connect(t), withReplica()...)
		for i := range 3 {
			key := fmt.Sprint("k", i)
			readers := []*core.Lease{lock(t, locks.With(core.WithShared(true)), key), lock(t, other.With(core.WithShared(true)), key)}
			wantError(t, errorOf(other.TryLock(t.Context(), key)), core.ErrBusy)
			writer := startLock(t, other, key)
			suite.Eventually(t, "the writer is in the queue", func() bool {
				return servers.rdb.LLen(t.Context(), "{reqlock:"+key+"}:q").Val() == 1
			})
			wantError(t, errorOf(locks.With(core.WithShared(true)).TryLock(t.Context(), key)), core.ErrBusy)
			for _, reader := range readers {
				release(t, reader)
			}
			release(t, writer())
			permits := []*core.Lease{lock(t, locks.With(core.WithPermits(2)), key), lock(t, other.With(core.WithPermits(2)), key)}
			wantError(t, errorOf(locks.With(core.WithPermits(2)).TryLock(t.Context(), key)), core.ErrBusy)
			for _, permit := range permits {
				release(t, permit)
			}
		}
		awaitNoKeys(t, servers.rdb)
	})
}

// A shared lease that too few replicas have is not granted. It leaves nothing, and the leases
// beside it stay.
func TestTooFewReplicasGrantNoSharedLock(t *testing.T) {
	onReplicated(t, func(t *testing.T, servers *replicated) {
		locks := newLocker(t, servers.connect(t), withoutReplica()...)
		servers.awaitReplicas(t, locks)
		for name, shared := range map[string]core.Option{"reader": core.WithShared(true), "permit": core.WithPermits(2)} {
			view := locks.With(shared)
			held := lock(t, view, name)
			servers.refuse(true)
			for _, fencing := range []bool{false, true} {
				if fencing && name == "permit" {
					continue
				}
				_, err := view.With(core.WithFencing(fencing)).TryLock(t.Context(), name)
				if !errors.Is(err, core.ErrUnavailable) || !strings.Contains(err.Error(), tooFew) {
					t.Errorf("%s, fencing %v: %v", name, fencing, err)
				}
			}
			suite.Eventually(t, "only the lease of before is left", func() bool {
				out := servers.rdb.ZRange(t.Context(), "{reqlock:"+name+"}:s", 0, -1).Val()
				return len(out) == 1 && out[0] == held.Token()
			})
			servers.refuse(false)
			servers.awaitReplicas(t, locks)
			release(t, held)
			awaitNoKeys(t, servers.rdb)
		}
	})
}
