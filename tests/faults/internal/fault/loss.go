package fault

import "github.com/reqlock/reqlock/internal/testkit/redistest"

// A Loss reports whether data of a key, by its name in Redis, may be lost. It is nil if no
// data may be lost.
type Loss func(key string) bool

// everything is the loss of all keys.
func everything(string) bool { return true }

// only returns the loss of one key.
func only(lost string) Loss { return func(key string) bool { return key == lost } }

// lossOf returns the loss of writes that a master has confirmed and that its replicas may
// lack. It returns nil if all replicas must acknowledge a lease.
func (s *System) lossOf(what Loss) Loss {
	all := 2 // replicas of a master with Sentinels
	if s.Cluster != nil {
		all = 1
	}
	if s.Replicas >= all {
		return nil
	}
	return what
}

// slotsOf returns the loss of all keys that a master of a Cluster owns now.
func (s *System) slotsOf(master *redistest.Server) Loss {
	s.Helper()
	client := master.Client(s)
	defer func() { _ = client.Close() }()
	ranges, err := client.ClusterSlots(s.Context()).Result() //nolint:staticcheck // what clients of a cluster ask as well
	if err != nil {
		s.Fatalf("CLUSTER SLOTS of %s: %v", master.Addr(), err)
	}
	owned := map[int]bool{}
	for _, r := range ranges {
		for slot := r.Start; slot <= r.End; slot++ {
			owned[slot] = len(r.Nodes) > 0 && r.Nodes[0].Addr == master.Addr()
		}
	}
	return func(key string) bool { return owned[hashSlot(key)] }
}
