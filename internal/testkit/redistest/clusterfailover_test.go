package redistest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// has asserts the value of the key on the server itself, a master or a replica.
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

// admits asserts that the server accepts replicas.
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

	started := time.Now()
	if now := c.Failover(master); now != replica || c.MasterOf("{k}") != replica {
		t.Errorf("%s took over, want %s", now.Addr(), replica.Addr())
	}
	t.Logf("failed over after %v", time.Since(started))
	if got := client.Get(t.Context(), "{k}kept").Val(); got != "v" {
		t.Errorf("the client gets %q", got)
	}
	has(t, replica, "{k}kept", "v")
	has(t, replica, "{k}lost", "")

	started = time.Now()
	master.Restart()
	c.Await()
	t.Logf("restarted after %v", time.Since(started))
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

	// Back and forth, faster than the votes of an election expire.
	if now := c.Switch(first); now != second || c.MasterOf("{k}") != second {
		t.Errorf("switched to %s", now.Addr())
	}

	// The master is stopped, is replaced, and resumes.
	second.Pause()
	if now := c.AwaitFailover(second); now != first || c.MasterOf("{k}") != first {
		t.Errorf("%s took over", now.Addr())
	}
	second.Resume()
	c.Await()
	has(t, second, "{k}kept", "v")

	r := &recorder{TB: t}
	c.tb = r
	for name, do := range map[string]func(*Server) *Server{
		"failover": c.Failover, "switch": c.Switch, "takeover": c.Takeover,
	} {
		r.ended = ""
		watch(t, func(testing.TB) { do(second) })
		if !strings.Contains(r.ended, "it is not a master") || !second.isUp() {
			t.Errorf("%s from a replica: got %q", name, r.ended)
		}
	}
}

// The masters restart together, because each accepts commands after two seconds.
func TestRestartOfClusterMasters(t *testing.T) {
	t.Parallel()
	suite.Full(t, "waits for the restarts of masters")
	c := StartCluster(t)
	client := c.Client(t)
	withData, withoutData := c.MasterOf("{k}"), c.MasterOf("other")
	if withData == withoutData {
		t.Fatal("the keys share a master")
	}
	ids := map[*Server]string{withData: withData.id(), withoutData: withoutData.id()}
	for _, key := range []string{"{k}", "other"} {
		if err := client.Set(t.Context(), key, "v", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}

	withData.RestartWithData()
	withoutData.Restart()
	c.Await()
	if c.MasterOf("{k}") != withData || c.MasterOf("other") != withoutData {
		t.Fatal("a restarted node is not a master any more")
	}
	for node, id := range ids {
		if node.id() != id {
			t.Errorf("%s has another id", node.Addr())
		}
	}
	if got := client.Get(t.Context(), "{k}").Val(); got != "v" {
		t.Errorf("restarted with data: got %q", got)
	}
	if err := client.Get(t.Context(), "other").Err(); !errors.Is(err, redis.Nil) {
		t.Errorf("restarted without data: got %v", err)
	}
	has(t, c.ReplicaOf(withData), "{k}", "v") // a replica does what its master did
	has(t, c.ReplicaOf(withoutData), "other", "")
}

// A master that was marked as failed, and was not replaced, keeps its slots. The other nodes
// remove the mark before the timeout of the test.
func TestAMasterMarkedAsFailedServesAgain(t *testing.T) {
	t.Parallel()
	suite.Full(t, "waits until all nodes mark a master as failed, and then until they remove the mark")
	c := StartCluster(t)
	master := c.MasterOf("k")
	c.ReplicaOf(master).mustRun("CONFIG", "SET", "cluster-replica-no-failover", "yes")
	master.Pause()
	c.await("a master that is taken for failed", func(ctx context.Context) error {
		for _, node := range c.nodes.up() {
			if err := c.healthyNode(ctx, node, nil); !errors.Is(err, errFailed) {
				return fmt.Errorf("%s finds only: %w", node.Addr(), err)
			}
		}
		return nil
	})
	master.Resume()
	c.Await()
	if c.MasterOf("k") != master {
		t.Error("it was replaced")
	}
	if err := c.Client(t).Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Error(err)
	}
	for _, node := range c.Nodes() {
		silent := node.Client(t).ConfigGet(t.Context(), "cluster-node-timeout").Val()["cluster-node-timeout"]
		if silent != strconv.FormatInt(idleTimeout.Milliseconds(), 10) {
			t.Errorf("%s has the node timeout %s ms", node.Addr(), silent)
		}
	}
}

// A replica that has just restarted can take over: it gets the votes.
func TestAHealthyClusterHasAllItsLinks(t *testing.T) {
	t.Parallel()
	suite.Full(t, "restarts replicas repeatedly")
	c := StartCluster(t)
	for _, master := range c.Masters() {
		c.ReplicaOf(master).RestartWithData()
		c.Await()
		for _, node := range c.Nodes() {
			nodes, err := node.Client(t).ClusterNodes(t.Context()).Result()
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(nodes, " disconnected") {
				t.Errorf("%s has not all links:\n%s", node.Addr(), nodes)
			}
		}
	}
}
