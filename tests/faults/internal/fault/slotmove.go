package fault

import (
	"time"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// moveCount is how often a slot is moved, back and forth.
const moveCount = 4

// moveSlot moves the slot of a lock away and back, without pauses.
func moveSlot(s *System) {
	s.Helper()
	key := s.someKey()
	from, to := s.slotMove(key)
	for range moveCount {
		s.disrupt("a slot moves", func() { s.Cluster.MoveSlot(key, to) })
		from, to = to, from
	}
}

// moveTime is how long the slow move of a slot takes.
const moveTime = time.Second

// moveSlotSlowly moves the slot of a lock. Meanwhile each of two masters has half of its
// keys. It calls amid in the middle of the move.
func (s *System) moveSlotSlowly(amid func()) {
	s.Helper()
	key := s.someKey()
	from, to := s.slotMove(key)
	s.disrupt("a slot moves slowly", func() {
		move := s.Cluster.BeginMove(key, to)
		if half := s.halfOfSlot(key, from); len(half) > 0 {
			move.Keys(half...)
		}
		s.sleep(moveTime / 2)
		amid()
		s.sleep(moveTime / 2)
		move.Finish()
	})
}

// halfOfSlot chooses half of the keys in the slot of a key, rounded up.
func (s *System) halfOfSlot(key string, master *redistest.Server) []string {
	s.Helper()
	client := master.Client(s)
	defer func() { _ = client.Close() }()
	keys, err := client.ClusterGetKeysInSlot(s.Context(), s.Cluster.Slot(key), 1000).Result()
	if err != nil {
		s.Fatalf("CLUSTER GETKEYSINSLOT of %s: %v", master.Addr(), err)
	}
	s.forkRandom().Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	return keys[:(len(keys)+1)/2]
}

// sleep waits for a time, or until the run is interrupted.
func (s *System) sleep(d time.Duration) {
	select {
	case <-time.After(d):
	case <-s.Context().Done():
	}
}

// killAmidMove kills a client process while a slot is moved.
func killAmidMove(s *System) {
	s.Helper()
	s.moveSlotSlowly(func() { s.Workload.Kill(s.someProcess()) })
}

// slotMove returns the master of the key, and another one.
func (s *System) slotMove(key string) (from, to *redistest.Server) {
	s.Helper()
	from = s.Cluster.MasterOf(key)
	for to = from; to == from; {
		masters := s.Cluster.Masters()
		to = masters[s.Random.IntN(len(masters))]
	}
	return from, to
}
