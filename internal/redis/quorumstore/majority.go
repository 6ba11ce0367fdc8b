package quorumstore

import (
	"fmt"
	"slices"
	"time"

	"github.com/reqlock/reqlock/internal/store"
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

// missingMajority returns the fault of an operation on which these servers failed. It returns
// nil if the other servers are a majority. The fault is temporary if the servers with a
// permanent failure are few enough: without them, the others are a majority.
func (s *Store) missingMajority(failures []error) error {
	minority := len(s.servers) - s.majority
	if len(failures) <= minority {
		return nil
	}
	fault := &store.Fault{}
	permanent := 0
	cause := failures[0]
	for _, err := range failures {
		one := store.FaultOf(err)
		fault.Unknown = fault.Unknown || one.Unknown
		fault.Outage = fault.Outage || one.Outage
		if !one.Temporary {
			permanent++
			if permanent > minority {
				cause = err
			}
		}
	}
	fault.Temporary = permanent <= minority
	fault.Err = fmt.Errorf("no majority: %d of %d servers failed, one with: %w", len(failures), len(s.servers), cause)
	return fault
}

// unknownOutcome returns the fault of an operation that these failures left without a result:
// a missing majority or, if there is a majority, the first failure.
func (s *Store) unknownOutcome(failures []error) error {
	if err := s.missingMajority(failures); err != nil {
		return err
	}
	first := store.FaultOf(failures[0])
	return &store.Fault{Unknown: first.Unknown, Temporary: first.Temporary, Outage: first.Outage, Err: failures[0]}
}

// isTemporary reports whether err is a fault after which a retry may succeed.
func isTemporary(err error) bool { return err != nil && store.FaultOf(err).Temporary }
