package fault

import "github.com/reqlock/reqlock/internal/testkit/redistest"

// A Loss says of a key, by its name in Redis, whether data of it may be lost. Where
// there is none, it is nil.
type Loss func(key string) bool

// everything is the loss of all keys.
func everything(string) bool { return true }

// only is the loss of one key.
func only(lost string) Loss { return func(key string) bool { return key == lost } }

// lossOf is a loss of what a master has confirmed, and its replicas may not know. There is
// none where a lease counts only once all of them have acknowledged it.
func (s *System) lossOf(what Loss) Loss {
	all := 2 // of Sentinel
	if s.Cluster != nil {
		all = 1
	}
	if s.Replicas >= all {
		return nil
	}
	return what
}

// slotsOf is the loss of the keys that this master of a Cluster has now.
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
