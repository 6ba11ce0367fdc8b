package fault

import (
	"context"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestHashSlotEqualsTheServers(t *testing.T) {
	t.Parallel()
	awaitTurn(t)
	cluster := redistest.StartCluster(t)
	for _, key := range []string{"", "a", "reqlock:lock-0", "reqlock:i:pay-12", "{reqlock:lock-0}:q", "{}x", "a{b", "a{b}c{d}", "{a", "ü"} {
		if got, want := hashSlot(key), cluster.Slot(key); got != want {
			t.Errorf("%q is in the slot %d, not %d", key, want, got)
		}
	}
	s := &System{TB: t, Cluster: cluster}
	masters := cluster.Masters()
	for _, key := range []string{"a", "b", "c", "d", "e"} {
		owner := cluster.MasterOf(key)
		for _, master := range masters {
			if lost := s.slotsOf(master); lost(key) != (master == owner) {
				t.Errorf("%s has %q: %v", master.Addr(), key, lost(key))
			}
		}
	}
}

// Writes that the new master confirms are not lost: a loss ends when the old master does
// not serve any more, and not earlier.
func TestLossEndsWithTheOldMaster(t *testing.T) {
	t.Parallel()
	for name, depose := range map[string]func(master *redistest.Server){
		"it ends":           (*redistest.Server).Kill,
		"it is a replica":   func(master *redistest.Server) { follow(t, master, "127.0.0.1", "1") },
		"it was paused":     func(master *redistest.Server) { master.Pause(); master.Resume(); master.Kill() },
		"it is still there": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			master := redistest.Start(t)
			ended := make(chan struct{})
			s := &System{TB: t, Disrupt: func(_ string, lost Loss) func() {
				if !lost("a") || lost("b") {
					t.Error("it is the loss of another key")
				}
				return func() {
					select {
					case <-ended:
					default:
						close(ended)
					}
				}
			}}
			s.replaceServing("the master is replaced", master, only("a"), func() {
				if suite.IsClosed(ended) {
					t.Error("over before anything has happened")
				}
				if depose != nil {
					depose(master)
					s.await("the end of the loss", func() bool { return suite.IsClosed(ended) })
				}
			})
			if !suite.IsClosed(ended) {
				t.Error("it has not ended")
			}
		})
	}
}

// follow makes a server a replica.
func follow(t *testing.T, server *redistest.Server, host, port string) {
	t.Helper()
	if err := server.Client(t).ReplicaOf(context.Background(), host, port).Err(); err != nil {
		t.Error(err)
	}
}
