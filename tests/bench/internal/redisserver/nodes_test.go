package redisserver

import (
	"strconv"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// stopLater stops servers at the end of the test, if they were started.
func stopLater(t *testing.T, servers interface{ Stop() error }, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := servers.Stop(); err != nil {
			t.Error(err)
		}
	})
}

// Nodes do not share data.
func TestNodesKnowNothingOfEachOther(t *testing.T) {
	redistest.Program(t)
	all, err := StartNodes(t.Context(), 3)
	stopLater(t, all, err)
	for i, node := range all.nodes {
		if err := node.Client.Set(t.Context(), strconv.Itoa(i), "v", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for i, node := range all.nodes {
		if keys, err := node.Client.Keys(t.Context(), "*").Result(); err != nil || len(keys) != 1 || keys[0] != strconv.Itoa(i) {
			t.Errorf("node %d has %v: %v", i, keys, err)
		}
	}
	two := all.First(2)
	if addrs := two.Addrs(); len(addrs) != 2 || addrs[0] != all.Addrs()[0] || addrs[1] != all.Addrs()[1] {
		t.Errorf("the first two of %v are %v", all.Addrs(), addrs)
	}
	if used, err := two.Used(t.Context()); err != nil || used.Keys != 2 || used.Calls["set"] != 2 {
		t.Errorf("two nodes have done %+v: %v", used, err)
	}
}

// AwaitAge waits for the servers' own uptime.
func TestNodesAreOldEnough(t *testing.T) {
	redistest.Program(t)
	all, err := StartNodes(t.Context(), 2)
	stopLater(t, all, err)
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
