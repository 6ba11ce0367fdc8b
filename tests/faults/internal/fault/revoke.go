package fault

import (
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/inspect"
)

// revokeFaults returns the fault in which an operator revokes leases of holders that live. The
// holders lose their leases. No loss of data is declared: it would excuse a second holder beside the first one.
func revokeFaults() []Fault {
	return []Fault{{
		Name: "lease-is-revoked", On: withOneCopy(),
		Inject: repeat(6, func(s *System) {
			operator, err := inspect.New(s.Admin, inspect.WithObserver(func(core.Event) {}))
			if err != nil {
				s.Fatalf("the operator: %v", err)
			}
			random := s.forkRandom()
			s.during("the lease is revoked", nil, func() {
				s.await("a lease to revoke", func() bool { return s.revoke(operator, s.Keys[random.IntN(len(s.Keys))]) })
				s.runFor(1, 1.2) // the holder learns of it within a third of a TTL, and the tombstone ends after one
			})
		}),
	}}
}

// revoke revokes the leases of a lock, if it is held, and reports whether there was one.
func (s *System) revoke(operator *inspect.Inspector, key string) bool {
	lock, err := operator.Lock(s.Context(), key)
	if err != nil || len(lock.Holders) == 0 || lock.Holders[0].Kind != inspect.HolderProcess {
		return false
	}
	return operator.Revoke(s.Context(), lock) == nil
}
