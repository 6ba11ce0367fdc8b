package redistest

import (
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// While one replica is cut off, the other one has the writes of the master.
func TestRefuseMaster(t *testing.T) {
	t.Parallel()
	program := Program(t)
	var all group
	for range 3 {
		all = append(all, newServer(t, program, replicated(nil)))
	}
	all.start(t)
	master, refuser, other := all[0], all[1], all[2]
	for _, replica := range []*Server{refuser, other} {
		replica.mustRun("REPLICAOF", "127.0.0.1", master.port)
		suite.Eventually(t, "the replica", func() bool { return follows(t.Context(), replica, master) == nil })
	}

	refuser.RefuseMaster(true)
	if err := master.Client(t).Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	awaitKey(t, other.Client(t), "k", "v")
	has(t, refuser, "k", "")
	suite.Eventually(t, "a refusal", func() bool {
		entries, err := master.admin().ACLLog(t.Context(), 10).Result()
		return err == nil && slices.ContainsFunc(entries, func(e *redis.ACLLogEntry) bool { return e.Reason == "auth" })
	})
	has(t, refuser, "k", "")

	refuser.RefuseMaster(false)
	awaitKey(t, refuser.Client(t), "k", "v")
}

func TestReplicatedMasterHasOneReplica(t *testing.T) {
	t.Parallel()
	master := StartReplicated(t)
	client := master.Client(t)
	client.Set(t.Context(), "k", "v", 0)
	if n := client.Wait(t.Context(), 1, 10*time.Second).Val(); n != 1 {
		t.Errorf("%d replicas have the key, want 1", n)
	}
	master.RefuseReplicas(true)
	client.Set(t.Context(), "k", "w", 0)
	if n := client.Wait(t.Context(), 1, 50*time.Millisecond).Val(); n != 0 {
		t.Errorf("%d refused replicas have the key", n)
	}
}

func TestReplicasAllHaveTheDataOfTheMaster(t *testing.T) {
	t.Parallel()
	servers := StartReplicas(t, 2)
	client := servers[0].Client(t)
	client.Set(t.Context(), "k", "v", 0)
	if n := client.Wait(t.Context(), 2, 10*time.Second).Val(); n != 2 {
		t.Errorf("%d replicas have the key, want 2", n)
	}
	for _, replica := range servers[1:] {
		if value := replica.Client(t).Get(t.Context(), "k").Val(); value != "v" {
			t.Errorf("%s has %q", replica.Addr(), value)
		}
	}
}
