package redistest

import (
	"testing"
	"time"
)

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
