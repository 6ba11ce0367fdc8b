package pipeline

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/command"
)

// A fakeCluster is a fake whose client treats it as a cluster. Its nodes have the numbers from 1,
// and equal parts of the slots.
type fakeCluster struct {
	*fake
	client  *redis.ClusterClient
	slots   []redis.ClusterSlot
	loads   atomic.Int64  // of the slots
	loading chan struct{} // a load waits until it is closed, unless it is nil
	loadErr error
	lost    map[string]error // the errors of MasterForKey, by the key
}

// inClusterBubble runs the test in a bubble, with the Pipeline of a cluster.
func inClusterBubble(t *testing.T, nodes int, replicas command.Replicas, test func(t *testing.T, f *fakeCluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeCluster{fake: newFake(t), lost: make(map[string]error)}
		const slotCount = 16384
		for i := range nodes {
			f.slots = append(f.slots, redis.ClusterSlot{
				Start: i * slotCount / nodes, End: (i+1)*slotCount/nodes - 1, Nodes: []redis.ClusterNode{{Addr: address(i + 1)}},
			})
		}
		f.client = redis.NewClusterClient(&redis.ClusterOptions{
			ClusterStateReloadInterval: time.Hour, // longer than the test
			Dialer:                     f.dial,
			ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
				f.loads.Add(1)
				if f.loading != nil {
					<-f.loading
				}
				return f.slots, f.loadErr
			},
		})
		f.client.OnNewNode(func(node *redis.Client) { node.AddHook(fakeServer{fake: f.fake, address: node.Options().Addr}) })
		f.client.AddHook(fakeServer{fake: f.fake})
		f.open(clusterClient{f.client, f}, replicas)
		test(t, f)
	})
}

// address returns the address of a node.
func address(node int) string { return fmt.Sprintf("10.0.0.%d:6379", node) }

// A clusterClient is a client that may not find the masters of keys.
type clusterClient struct {
	*redis.ClusterClient
	cluster *fakeCluster
}

func (c clusterClient) MasterForKey(ctx context.Context, key string) (*redis.Client, error) {
	if err := c.cluster.lost[key]; err != nil {
		return nil, err
	}
	return c.ClusterClient.MasterForKey(ctx, key)
}

// callOf begins a call with a key of the node. It needs the slots.
func (f *fakeCluster) callOf(node int, name string, bound time.Duration) *fakeCall {
	f.t.Helper()
	c := f.call(name, bound)
	c.Key = []byte(f.keyOf(node))
	return c
}

// keyOf returns a key of the node.
func (f *fakeCluster) keyOf(node int) string {
	f.t.Helper()
	slots := redis.NewClusterClient(&redis.ClusterOptions{ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) { return f.slots, nil }})
	defer func() { _ = slots.Close() }()
	for i := 0; ; i++ {
		key := fmt.Sprint("k", i)
		master, err := slots.MasterForKey(context.Background(), key)
		if err != nil {
			f.t.Fatal(err)
		}
		if master.Options().Addr == address(node) {
			return key
		}
	}
}

// sendTo sends a call of the class Acquire with a key of the node.
func (f *fakeCluster) sendTo(node int, name string, bound time.Duration) *fakeCall {
	f.t.Helper()
	c := f.callOf(node, name, bound)
	f.Do(&c.Call, Acquire)
	return c
}

// warm makes the client load the slots, and the Pipeline use the lanes of the node.
func (f *fakeCluster) warm(node int) {
	f.t.Helper()
	f.loadErr = nil
	for range 2 { // the first call uses the lanes of keys whose master is unknown
		c := f.sendTo(node, "warm", time.Second)
		b := await(f.fake, "a warm call", f.batches)
		b.replyAll(int64(1))
		c.wantReply(f.elapsed(), int64(1))
		synctest.Wait()
	}
}

// String returns the number of the node and the names of the commands.
func (b *fakeBatch) String() string {
	node := strings.TrimSuffix(strings.TrimPrefix(b.address, "10.0.0."), ":6379")
	return node + ": " + strings.Join(b.names(), ", ")
}

// nextAll returns the next batches, in the order of their descriptions, which String returns. They
// must be sent at this time.
func (f *fakeCluster) nextAll(at time.Duration, want ...string) []*fakeBatch {
	f.t.Helper()
	found := make([]*fakeBatch, len(want))
	for range want {
		b := await(f.fake, fmt.Sprintf("batches %q", want), f.batches)
		i := slices.Index(want, b.String())
		if i < 0 || b.at != at {
			f.t.Fatalf("%q was sent at %v, want %q at %v", b, b.at, want, at)
		}
		found[i] = b
	}
	return found
}
