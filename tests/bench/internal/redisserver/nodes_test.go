package redisserver

import (
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestUsageOfNodesIsTheirSum(t *testing.T) {
	t.Parallel()
	all := StartNodes(t, 3)
	for i, node := range all.nodes {
		if err := node.Client.Set(t.Context(), strconv.Itoa(i), "v", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	two := all.First(2)
	if addrs := two.Addrs(); len(addrs) != 2 || addrs[0] != all.Addrs()[0] || addrs[1] != all.Addrs()[1] {
		t.Errorf("the first two of %v are %v", all.Addrs(), addrs)
	}
	if sum := used(t, two); sum.Keys != 2 || sum.Calls["set"] != 2 {
		t.Errorf("two nodes have done %+v", sum)
	}
}

// AwaitAge waits for the servers' own uptime.
func TestNodesAreOldEnough(t *testing.T) {
	t.Parallel()
	all := StartNodes(t, 2)
	const age = time.Second
	if err := all.AwaitAge(t.Context(), age); err != nil {
		t.Fatal(err)
	}
	for _, node := range all.nodes {
		info, err := node.info(t.Context(), "server")
		if err != nil {
			t.Fatal(err)
		}
		if up := secondsOf(info["uptime_in_seconds"]); up <= age {
			t.Errorf("%s has run for %v, want more than %v", node.Addr, up, age)
		}
	}
}

// The keys are in all slots, so each node has a third of them.
func TestUsageOfAClusterIsTheSumOfItsMasters(t *testing.T) {
	t.Parallel()
	c := StartCluster(t, 3)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs()})
	defer func() { _ = client.Close() }()
	before := used(t, c)
	const keys = 300
	for i := range keys {
		if err := client.Set(t.Context(), strconv.Itoa(i), "v", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	after := used(t, c)
	since := after.Since(before)
	if since.Calls["set"] != keys || since.Keys != keys || since.Memory <= 0 {
		t.Errorf("%d SET are %+v", keys, since)
	}

	var cpu time.Duration // of a later time: CPU time only rises
	for _, node := range c.nodes {
		of := used(t, node)
		cpu += of.CPU
		if of.Keys < keys/6 || of.Keys > keys/2 {
			t.Errorf("%s has %d of %d keys", node.Addr, of.Keys, keys)
		}
	}
	if after.CPU > cpu || after.CPU < cpu/2 {
		t.Errorf("the CPU time of the cluster is %v, and of its nodes %v", after.CPU, cpu)
	}

	if err := c.Clear(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := used(t, c).Keys; left != 0 {
		t.Errorf("%d keys are left", left)
	}
}

// The figures depend on these settings. Tests with servers of redistest have others.
func TestServersHaveTheSettingsOfTheBenchmarks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		servers  []*Server
		settings map[string]string
	}{
		{"server", []*Server{Start(t)}, nil},
		{"cluster", StartCluster(t, 3).nodes, map[string]string{"cluster-node-timeout": nodeTimeout}},
		{"replicated", StartReplicated(t, 1).all.nodes, map[string]string{"repl-ping-replica-period": "10"}},
	} {
		for _, server := range c.servers {
			set, err := server.Client.ConfigGet(t.Context(), "*").Result()
			if err != nil {
				t.Fatal(err)
			}
			for name, want := range map[string]string{"save": "", "appendonly": "no", "bind": "127.0.0.1"} {
				if set[name] != want {
					t.Errorf("%s: %s is %q, want %q", c.name, name, set[name], want)
				}
			}
			for name, want := range c.settings {
				if set[name] != want {
					t.Errorf("%s: %s is %q, want %q", c.name, name, set[name], want)
				}
			}
		}
	}
}
