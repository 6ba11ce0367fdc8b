package resharding

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// lockOf and queueOf return the names of a lock's keys in Redis. The key of the lock has
// a hash tag.
func lockOf(key string) string  { return "reqlock:" + key }
func queueOf(key string) string { return lockOf(key) + ":q" }

// A stage is a state of a move between its beginning and its end.
type stage struct {
	name string
	// reach brings a move from the stage before to this one.
	reach func(t *testing.T, m *move)
}

// stages are the stages of a move that differ for a lock, in their order. The step after
// them announces the new master of the slot to all nodes.
var stages = [...]stage{
	{"no key has moved", func(*testing.T, *move) {}},
	{"the lock has moved, and its queue has not", func(_ *testing.T, m *move) { m.Keys(lockOf(m.key)) }},
	{"the queue has moved", func(_ *testing.T, m *move) { m.Keys(queueOf(m.key)) }},
	{"all keys have moved", func(t *testing.T, m *move) { m.rest(t) }},
}

// atEachStage runs a test at each stage of a move, each with a slot of its own. The test
// gets the index of the stage.
func atEachStage(t *testing.T, name string, test func(t *testing.T, key string, stage int)) {
	t.Helper()
	for i, s := range stages {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			test(t, fmt.Sprintf("{%s%d}", name, i), i)
		})
	}
}

// A move is the move of the slot of a key.
type move struct {
	*redistest.Move
	key   string
	slot  int
	nodes [2]*redis.Client // from, to
}

func beginMove(t *testing.T, cluster *redistest.Cluster, key string) *move {
	t.Helper()
	from, to := endpoints(t, cluster, key)
	return &move{cluster.BeginMove(key, to), key, cluster.Slot(key), [2]*redis.Client{from.Client(t), to.Client(t)}}
}

// endpoints returns the master of the key, and the next master after it.
func endpoints(t *testing.T, cluster *redistest.Cluster, key string) (from, to *redistest.Server) {
	t.Helper()
	masters := cluster.Masters()
	from = cluster.MasterOf(key)
	i := slices.Index(masters, from)
	return from, masters[(i+1)%len(masters)]
}

// finishing serializes the ends of moves. Each end raises the epoch of the new master. If
// two masters raise theirs at once, nodes may reject the claim of one of them.
var finishing sync.Mutex

func (m *move) finish() {
	finishing.Lock()
	defer finishing.Unlock()
	m.Finish()
}

func (m *move) rest(t *testing.T) {
	t.Helper()
	for {
		keys, err := m.nodes[0].ClusterGetKeysInSlot(t.Context(), m.slot, 100).Result()
		if err != nil {
			t.Fatal(err)
		}
		if len(keys) == 0 {
			break
		}
		m.Keys(keys...)
	}
}

func (m *move) reach(t *testing.T, stage int) {
	t.Helper()
	for _, s := range stages[:stage+1] {
		s.reach(t, m)
	}
}

func (m *move) hasKey(t *testing.T, name string) bool {
	t.Helper()
	for _, rdb := range m.nodes {
		keys, err := rdb.ClusterGetKeysInSlot(t.Context(), m.slot, 1000).Result()
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(keys, name) {
			return true
		}
	}
	return false
}
