package redistest

import (
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func has(t *testing.T, server *Server, key, want string) {
	t.Helper()
	client := server.Client(t)
	ask := client.Pipeline()
	if server.role == clusterNode {
		ask.ReadOnly(t.Context()) // otherwise a replica redirects reads
	}
	answer := ask.Get(t.Context(), key)
	if _, err := ask.Exec(t.Context()); err != nil && !errors.Is(err, redis.Nil) {
		t.Fatal(err)
	}
	if got := answer.Val(); got != want {
		t.Errorf("%s of %s is %q, want %q", key, server.Addr(), got, want)
	}
}

// keptAndLost writes a key that reaches the replicas, and one that does not.
func keptAndLost(t *testing.T, master *Server, kept, lost string) {
	t.Helper()
	client := master.Client(t)
	pipe := client.Pipeline()
	pipe.Set(t.Context(), kept, "v", 0)
	acks := pipe.Do(t.Context(), "WAIT", 1, readyTimeout.Milliseconds())
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, _ := acks.Int(); n < 1 {
		t.Fatal("no replica has the key")
	}
	master.RefuseReplicas(true)
	if err := client.Set(t.Context(), lost, "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
}

func admits(t *testing.T, server *Server) {
	t.Helper()
	client := server.Client(t, func(o *redis.Options) { o.Username, o.Password = replicaUser, "any" })
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Errorf("%s refuses replicas: %v", server.Addr(), err)
	}
}

func TestClusterFailover(t *testing.T) {
	t.Parallel()
	suite.Full(t, "waits for a failover and a restart")
	c := StartCluster(t)
	client := c.Client(t)
	master, other := c.MasterOf("{k}"), c.MasterOf("other")
	if master == other {
		t.Fatal("the keys share a master")
	}
	replica, id := c.ReplicaOf(master), master.id()
	keptAndLost(t, master, "{k}kept", "{k}lost")

	if now := c.Failover(master); now != replica || c.MasterOf("{k}") != replica {
		t.Errorf("%s took over, want %s", now.Addr(), replica.Addr())
	}
	if got := client.Get(t.Context(), "{k}kept").Val(); got != "v" {
		t.Errorf("the client gets %q", got)
	}
	has(t, replica, "{k}kept", "v")
	has(t, replica, "{k}lost", "")

	master.Restart()
	c.Await()
	if master.id() != id || c.ReplicaOf(replica) != master {
		t.Error("the restarted node is not the one that it was")
	}
	has(t, master, "{k}kept", "v")
	has(t, master, "{k}lost", "")
	if c.MasterOf("other") != other {
		t.Error("another master was replaced")
	}
}

func TestClusterFailoverOfLivingMaster(t *testing.T) {
	t.Parallel()
	suite.Full(t, "has several failovers, one after the other")
	c := StartCluster(t)
	first := c.MasterOf("{k}")
	second := c.ReplicaOf(first)

	// Planned: nothing is lost.
	if err := first.Client(t).Set(t.Context(), "{k}switched", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if now := c.Switch(first); now != second || c.MasterOf("{k}") != second {
		t.Errorf("switched to %s", now.Addr())
	}
	has(t, second, "{k}switched", "v")
	has(t, first, "{k}switched", "v")

	// Without an election: writes that the replica does not have are lost.
	keptAndLost(t, second, "{k}kept", "{k}lost")
	if now := c.Takeover(second); now != first || c.MasterOf("{k}") != first {
		t.Errorf("%s took over", now.Addr())
	}
	for _, node := range []*Server{first, second} {
		has(t, node, "{k}kept", "v")
		has(t, node, "{k}lost", "")
	}
	second.RefuseReplicas(false)
	admits(t, second)

	// The master is stopped, is replaced, and resumes.
	first.Pause()
	if now := c.AwaitFailover(first); now != second || c.MasterOf("{k}") != second {
		t.Errorf("%s took over", now.Addr())
	}
	first.Resume()
	c.Await()
	has(t, first, "{k}kept", "v")
}
