package redisserver

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/child"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// The usage of a cluster is the sum over its nodes. The keys are in all slots, so each node
// has a third of them.
func TestClusterSumsUpItsNodes(t *testing.T) {
	redistest.Program(t)
	c, err := StartCluster(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs()})
	before, err := c.Used(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const keys = 300
	for i := range keys {
		if err := client.Set(t.Context(), strconv.Itoa(i), "v", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	after, err := c.Used(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	since := after.Since(before)
	if since.Calls["set"] != keys || since.Keys != keys || since.Memory <= 0 {
		t.Errorf("%d SET are %+v", keys, since)
	}

	var cpu time.Duration // of an earlier time: CPU time only rises
	for _, node := range c.nodes {
		used, err := node.Used(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		cpu += used.CPU
		if used.Keys < keys/6 || used.Keys > keys/2 {
			t.Errorf("%s has %d of %d keys", node.Addr, used.Keys, keys)
		}
	}
	if after.CPU > cpu || after.CPU < cpu/2 {
		t.Errorf("the CPU time of the cluster is %v, and of its nodes %v", after.CPU, cpu)
	}

	if err := c.Clear(t.Context()); err != nil {
		t.Fatal(err)
	}
	if cleared, err := c.Used(t.Context()); err != nil || cleared.Keys != 0 {
		t.Errorf("%d keys are left: %v", cleared.Keys, err)
	}
	if err := errors.Join(client.Close(), c.Stop()); err != nil {
		t.Fatal(err)
	}
	for _, node := range c.nodes {
		select {
		case <-node.process.Done():
		default:
			t.Errorf("%s still runs", node.Addr)
		}
	}
}

// After the start each node knows the whole cluster.
func TestNodesOfACluster(t *testing.T) {
	redistest.Program(t)
	c, err := StartCluster(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	for _, node := range c.nodes {
		info, err := node.Client.ClusterInfo(t.Context()).Result()
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]string{"cluster_state": "ok", "cluster_slots_ok": "16384", "cluster_size": "3"} {
			if got := parseInfo(info)[name]; got != want {
				t.Errorf("%s of %s is %q, want %q", name, node.Addr, got, want)
			}
		}
		set, err := node.Client.ConfigGet(t.Context(), "*").Result()
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]string{"save": "", "appendonly": "no", "cluster-node-timeout": "15000", "bind": loopback} {
			if set[name] != want {
				t.Errorf("%s of %s is %q, want %q", name, node.Addr, set[name], want)
			}
		}
	}
}

// A node that cannot listen on its bus port listens for clients for a moment. It must be
// started again on other ports.
func TestNodeOnATakenBusPort(t *testing.T) {
	redistest.Program(t)
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", net.JoinHostPort(loopback, "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	attempts := 0
	node, err := startOn(t.Context(), func(ctx context.Context) (ports, error) {
		p, err := freePorts(ctx)
		if attempts++; attempts == 1 {
			p.bus = taken.Addr().(*net.TCPAddr).Port
		}
		return p, err
	})
	if err != nil {
		t.Fatal(err)
	}
	if attempts == 1 {
		t.Error("a node runs without a bus")
	}
	if err := node.Stop(); err != nil {
		t.Error(err)
	}
}

// A server that has ended must be started again, however far it came.
func TestServerThatEndedIsNotOurs(t *testing.T) {
	p, err := freePort(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ended, err := child.Start(exec.CommandContext(t.Context(), "true"))
	if err != nil {
		t.Fatal(err)
	}
	<-ended.Done()
	s := &Server{
		Client:  redis.NewClient(&redis.Options{Addr: net.JoinHostPort(loopback, strconv.Itoa(p.clients)), MaxRetries: -1, DialerRetries: 1}),
		process: ended,
	}
	defer func() { _ = s.Client.Close() }()
	if err := s.isChild(t.Context()); !errors.Is(err, errExited) {
		t.Errorf("got %v", err)
	}
}

// The context ends before the nodes take commands. A remaining process would be a remaining
// goroutine.
func TestClusterThatCannotStartLeavesNothing(t *testing.T) {
	redistest.Program(t)
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond) // a cluster takes two seconds
	defer cancel()
	if c, err := StartCluster(ctx, 3); c != nil || err == nil {
		t.Fatalf("got %v, %v", c, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left in the directory of temporary files: %v, %v", left, err)
	}
}
