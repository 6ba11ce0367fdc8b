package redisserver

import (
	"strings"
	"testing"
	"time"
)

// All replicas acknowledge as soon as StartReplicated returns, and their CPU time is
// counted.
func TestReplicasAcknowledge(t *testing.T) {
	t.Parallel()
	const replicas = 2
	r := StartReplicated(t, replicas)
	if addrs := r.Addrs(); len(addrs) != 1 || addrs[0] != r.master().Addr {
		t.Errorf("a lock gets %v, want only the master", addrs)
	}
	info, err := r.master().Client.Info(t.Context(), "replication").Result()
	if n := strings.Count(info, "state=online"); err != nil || n != replicas {
		t.Errorf("%d of %d replicas are online: %v", n, replicas, err)
	}
	before := used(t, r)
	both := r.master().Client.Pipeline()
	both.Set(t.Context(), "k", "v", 0)
	acknowledged := both.Do(t.Context(), "WAIT", replicas, time.Minute.Milliseconds())
	if _, err := both.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, err := acknowledged.Int(); err != nil || n != replicas {
		t.Errorf("%d of %d replicas have acknowledged a SET: %v", n, replicas, err)
	}
	after := used(t, r)
	if since := after.Since(before); since.Calls["set"] != 1 || since.Keys != 1 {
		t.Errorf("a SET is %+v: it must not include the replicas", since)
	}
	// Read after the sum of all, and CPU time only rises.
	if alone := used(t, r.master()); after.CPU <= alone.CPU {
		t.Errorf("the CPU time of all is %v, and of the master %v", after.CPU, alone.CPU)
	}

	if err := r.Clear(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, server := range r.all.nodes {
		if n, err := server.Client.DBSize(t.Context()).Result(); err != nil || n != 0 {
			t.Errorf("%s has %d keys: %v", server.Addr, n, err)
		}
	}
}

// Clear returns an error if a replica has lost its master.
func TestClearWaitsForReplicas(t *testing.T) {
	t.Parallel()
	r := StartReplicated(t, 1)
	if err := r.all.nodes[1].Client.Do(t.Context(), "REPLICAOF", "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	if err := r.Clear(t.Context()); err == nil {
		t.Error("a replica that is none has deleted all keys")
	}
}
