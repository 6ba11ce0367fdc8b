package redistest

import (
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/child"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// One cluster is enough for all this: a new one takes two seconds.
func TestCluster(t *testing.T) {
	t.Parallel()
	started := time.Now()
	// An access rule is an arg like any other.
	c := StartCluster(t, "--requirepass", "secret", "--user", "app", "on", ">word", "~*", "+@all")
	t.Logf("the cluster is up after %v", time.Since(started))
	servesAllSlots(t, c)
	movesSlot(t, c)
	findsDisagreement(t, c) // the last one, because nodes do not agree afterwards
}

func TestMastersWithoutReplicasServeAllSlots(t *testing.T) {
	t.Parallel()
	for _, node := range StartMasters(t, 3) {
		info, err := node.Client(t).ClusterInfo(t.Context()).Result()
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"cluster_state:ok", "cluster_slots_ok:16384", "cluster_size:3", "cluster_known_nodes:3"} {
			if !strings.Contains(info, want+"\r\n") {
				t.Errorf("%s does not report %s: %q", node.Addr(), want, info)
			}
		}
	}
}

func servesAllSlots(t *testing.T, c *Cluster) {
	t.Helper()
	masters := c.Masters()
	if !slices.Equal(masters, c.Nodes()[:3]) {
		t.Fatalf("got %d masters", len(masters))
	}
	client := c.Client(t)
	app := c.Client(t, func(o *redis.ClusterOptions) { o.Username, o.Password = "app", "word" })
	if retries := client.Options().MaxRedirects; retries != 3 {
		t.Errorf("got %d redirects, want the default of 3", retries)
	}
	held := map[*Server]int64{}
	for i := range 100 {
		key := "k" + strconv.Itoa(i)
		if err := client.Set(t.Context(), key, "v", 0).Err(); err != nil {
			t.Fatal(err)
		}
		if err := app.Get(t.Context(), key).Err(); err != nil {
			t.Fatal(err)
		}
		held[c.MasterOf(key)]++
	}
	for _, master := range masters {
		size := master.Client(t).DBSize(t.Context()).Val()
		if size == 0 || size != held[master] {
			t.Errorf("%s has %d keys, want %d", master.Addr(), size, held[master])
		}
		suite.Eventually(t, "the keys at the replica", func() bool {
			return c.ReplicaOf(master).Client(t).DBSize(t.Context()).Val() == size
		})
	}
}

// The table is the same whichever node returns it, and a table that differs is found.
func findsDisagreement(t *testing.T, c *Cluster) {
	t.Helper()
	for _, node := range c.Nodes() {
		shards, err := node.Client(t).ClusterShards(t.Context()).Result()
		if err != nil {
			t.Fatal(err)
		}
		known := 0
		for _, shard := range shards {
			known += len(shard.Nodes)
		}
		if len(shards) != 3 || known != 6 {
			t.Errorf("%s knows %d nodes of %d shards", node.Addr(), known, len(shards))
		}
	}

	for _, master := range c.Masters() {
		if err := c.replaced(t.Context(), master); err == nil || !strings.Contains(err.Error(), "has not taken over") {
			t.Errorf("nothing has happened: got %v", err)
		}
	}

	master := c.Masters()[1]
	master.Pause()
	if _, err := c.healthy(t.Context()); err == nil || !strings.Contains(err.Error(), "which does not run") {
		t.Errorf("without a master: got %v", err)
	}
	master.Resume()

	cut := c.Masters()[0]
	cut.mustRun("CLUSTER", "DELSLOTS", 7)
	if _, err := c.table(t.Context()); err == nil || !strings.Contains(err.Error(), "do not agree") {
		t.Errorf("one node misses a slot: got %v", err)
	}
	for _, node := range c.Nodes() {
		if node != cut {
			node.mustRun("CLUSTER", "DELSLOTS", 7)
		}
	}
	if _, err := c.healthy(t.Context()); err == nil || !strings.Contains(err.Error(), "no node serves slot 7:") {
		t.Errorf("all nodes miss a slot: got %v", err)
	}
}

func TestClusterReportsBadArgs(t *testing.T) {
	t.Parallel()
	Program(t) // skips the test where there is no server
	for name, start := range map[string]func(tb testing.TB){
		"cluster":  func(tb testing.TB) { StartCluster(tb, "--no-such-option", "1") },
		"sentinel": func(tb testing.TB) { StartSentinel(tb, "--no-such-option", "1") },
	} {
		ended := watch(t, start)
		if !strings.HasPrefix(ended, "fatal: start redis-server") || !strings.Contains(ended, "no-such-option") {
			t.Errorf("%s: got %q", name, ended)
		}
	}
}

func TestCleanupEndsGroups(t *testing.T) {
	t.Parallel()
	Program(t) // skips the test where there is no server
	var servers group
	var children []*child.Process
	t.Run("inner", func(t *testing.T) {
		cluster, sentinels := StartCluster(t), StartSentinel(t)
		servers = slices.Concat(cluster.nodes, sentinels.all())
		for _, s := range servers {
			children = append(children, s.proc)
		}
		servers[1].Pause()
		servers[2].Restart()
		children = append(children, servers[2].proc)
		// The test ends without stopping the servers.
	})
	if len(servers) != 12 {
		t.Fatalf("got %d servers", len(servers))
	}
	for _, child := range children { // not their ports, which others may use by now
		if !child.HasEnded() {
			t.Errorf("process %d is not reaped", child.Pid())
		}
	}
}

// A server in cluster mode gets a free port for its bus. By default the bus would use the port
// of the server plus 10000, and an outgoing connection may use that one already.
func TestServerInClusterModeHasAPortForItsBus(t *testing.T) {
	t.Parallel()
	server := Start(t, "--cluster-enabled", "yes")
	if server.busPort < firstPort || server.busPort >= lastPort {
		t.Errorf("the port of the bus is %d", server.busPort)
	}
	if conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", loopback(server.busPort)); err != nil {
		t.Error(err)
	} else {
		_ = conn.Close()
	}
}

// Another process has taken the port of the bus.
func TestClusterNodeOnTakenBusPort(t *testing.T) {
	t.Parallel()
	node := newServer(t, Program(t), nil)
	node.role = clusterNode
	if err := node.start(); err != nil {
		t.Fatal(err)
	}
	node.Kill()
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", loopback(node.busPort))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()

	node.mu.Lock()
	err = node.launch()
	node.mu.Unlock()
	if err == nil || node.isUp() {
		t.Fatal("a node runs without a bus")
	}
	before := node.busPort
	if err := node.start(); err != nil || node.busPort == before {
		t.Errorf("not started elsewhere: %v", err)
	}
	if node.busPort < firstPort || node.busPort >= lastPort {
		t.Errorf("the port of the bus, %d, is in the range of outgoing connections", node.busPort)
	}
}
