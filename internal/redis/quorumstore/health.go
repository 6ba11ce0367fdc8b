package quorumstore

import (
	"fmt"
	"slices"
	"time"
)

// Watch makes the Store record since when servers have not served any command: see
// store.Store.
func (s *Store) Watch() {
	for _, one := range s.servers {
		one.Watch()
	}
}

// Unserved returns since when a majority of the servers is missing, and why: see store.Store.
// A server in quarantine is not missing: it answers, and votes soon.
func (s *Store) Unserved(key string) (since time.Time, why error) {
	var missing []time.Time
	var last error
	for _, one := range s.servers {
		if since, err := one.Unserved(key); !since.IsZero() {
			missing, last = append(missing, since), err
		}
	}
	minority := len(s.servers) - s.majority
	if len(missing) <= minority {
		return time.Time{}, nil
	}
	slices.SortFunc(missing, time.Time.Compare)
	why = fmt.Errorf("no majority: %d of %d servers failed, one with: %w", len(missing), len(s.servers), last)
	return missing[minority], why
}
