package resharding

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// The names of what belongs to a lock in Redis. Its key has a hash tag.
func lockOf(key string) string { return "reqlock:" + key }
func lineOf(key string) string { return lockOf(key) + ":q" }

// A stage is a state of a move that lasts while keys are moved.
type stage struct {
	name string
	// reach brings a move, whose stage is the one before, to this one.
	reach func(t *testing.T, m *move)
}

// stages are those of the move of a slot in which a lock is of interest, in their
// order. The next step is to tell all nodes that the slot has moved.
var stages = [...]stage{
	{"no key has moved", func(*testing.T, *move) {}},
	{"the lock has moved, and its line has not", func(_ *testing.T, m *move) { m.Keys(lockOf(m.key)) }},
	{"the line has moved too", func(_ *testing.T, m *move) { m.Keys(lineOf(m.key)) }},
	{"all keys have moved", func(t *testing.T, m *move) { m.rest(t) }},
}

// A move is that of the slot of a key.
type move struct {
	*redistest.Move
	key   string
	slot  int
	nodes [2]*redis.Client // from, to
}

// beginMove begins to move the slot of the key to another master.
func beginMove(t *testing.T, cluster *redistest.Cluster, key string) *move {
	t.Helper()
	from, to := ends(t, cluster, key)
	return &move{cluster.BeginMove(key, to), key, cluster.Slot(key), [2]*redis.Client{from.Client(t), to.Client(t)}}
}

// ends returns the master of the key, and the next one after it.
func ends(t *testing.T, cluster *redistest.Cluster, key string) (from, to *redistest.Server) {
	t.Helper()
	masters := cluster.Masters()
	from = cluster.MasterOf(key)
	for i, master := range masters {
		if master == from {
			to = masters[(i+1)%len(masters)]
		}
	}
	return from, to
}

// rest moves all keys that are left.
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

// reach reaches the stages up to the one of that number.
func (m *move) reach(t *testing.T, number int) {
	t.Helper()
	for _, s := range stages[:number+1] {
		s.reach(t, m)
	}
}
