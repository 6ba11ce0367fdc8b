package core

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/engine"
	"github.com/reqlock/reqlock/internal/redis/quorumstore"
	"github.com/reqlock/reqlock/internal/redis/readiness"
	"github.com/reqlock/reqlock/internal/redis/redisstore"
)

// NewQuorum returns a Locker that holds its locks on a majority of several independent Redis
// servers. While a majority is up, it takes and keeps locks, and each lock has one holder.
// The algorithm is Redlock, by Salvatore Sanfilippo, with a quarantine for servers that have
// just started: see WithQuarantine. Use the Locker as a Locker of New, with Lock, Do, Enter
// and the middlewares. NewQuorum does no I/O.
//
// The clients are connected to an odd number of servers, three or more. A client of Sentinel
// or of a cluster is refused. The Locker does not use the clients themselves: it opens its
// own connections by their Options, without their hooks, and closes them in Close. If two
// clients are connected to the same server, no lock is granted, and the error says so.
//
// Some features need one server that has all data, and are refused: fencing numbers
// (WithFencing), idempotent requests (Begin, ReadRecord, Resolve, WithUnknownSearch and the Idempotent
// middlewares), WithMinHold and WithReplicas. Waiters of several processes do not form one queue. The first
// process that finds the lock free gets it, so a waiter may wait longer than waiters that
// arrived later.
//
// A lock has one holder under three conditions. The clocks of servers and clients run at
// nearly the same speed. A holder stops when its lease's context ends. A server loses votes
// only by a restart, and its clock is not set forward after the restart, because that would
// end its quarantine. A resource needs fencing to be safe from a holder that was paused for
// longer than its lease. A quorum has no fencing.
//
// If a setting or a client is invalid, the error names it.
func NewQuorum(clients []redis.UniversalClient, opts ...Option) (*Locker, error) {
	s, err := settingsOf("NewQuorum", opts)
	if err != nil {
		return nil, err
	}
	if err := checkServers(clients); err != nil {
		return nil, fmt.Errorf("reqlock: NewQuorum: %w", err)
	}
	if s.quarantine == 0 {
		s.quarantine = s.ttl
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	s.process = redisstore.NewProcess()
	s.startLog(func(err error) error { return readiness.Explain(clients[0], s.prefix, s.replicas, err) })
	store, err := quorumstore.New(clients, s.prefix, s.process, s.quarantine)
	if err != nil {
		return nil, fmt.Errorf("reqlock: NewQuorum: %w", err)
	}
	store.NameSubscription(s.subscriptionName())
	config := s.engineConfig()
	config.Ballots = true
	return newLocker(quorum{store, make([]readiness.Passed, len(clients))}, engine.New(store, config), s, clients...), nil
}

// minServers is the smallest number of servers of a quorum. A smaller quorum would not
// survive the loss of one server.
const minServers = 3

// checkServers refuses clients that cannot form a quorum.
func checkServers(clients []redis.UniversalClient) error {
	if len(clients) < minServers || len(clients)%2 == 0 {
		return fmt.Errorf("it takes an odd number of servers, three or more, and not %d: one more than an odd number "+
			"does not survive one more that is down", len(clients))
	}
	for i, client := range clients {
		if isNil(client) {
			return fmt.Errorf("client %d is nil", i)
		}
		for j := range i {
			if reflect.TypeOf(client).Comparable() && clients[j] == client {
				return fmt.Errorf("clients %d and %d are the same, and a server has one vote", j, i)
			}
		}
	}
	return nil
}

// WithQuarantine sets for how long a server of a quorum does not vote after its start: the
// TTL of NewQuorum if not set, at least that TTL. A server that was restarted may have lost a
// vote for a lease that is still held. The server reports its uptime in whole seconds, so the
// quarantine may last one second more. No lease of the Locker or its views may have a longer
// TTL.
//
// All processes that share the servers need the same quarantine or a longer one. Only
// NewQuorum accepts this option.
func WithQuarantine(d time.Duration) Option {
	return rootOption{"WithQuarantine", "NewQuorum", func(r *root) error {
		if d <= 0 {
			return fmt.Errorf("reqlock: WithQuarantine: %v is not positive", d)
		}
		r.quarantine = d
		return checkUnit("WithQuarantine", d, 0)
	}}
}

// checkQuorum refuses settings that a quorum cannot have.
func (s *settings) checkQuorum() error {
	switch {
	case s.quarantine == 0:
		return nil
	case s.fencing:
		return errors.New("reqlock: WithFencing: a quorum has no counter that all its servers share, so its numbers could fall")
	case s.minHold > 0:
		return errors.New("reqlock: WithMinHold: a majority of the servers cannot leave a lock in one step")
	case s.replicas.Count > 0:
		return errors.New("reqlock: WithReplicas: the servers of a quorum are alone, and their votes need no replicas")
	case s.unknownSearch > 0:
		return errors.New("reqlock: WithUnknownSearch: a quorum runs no idempotent requests, whose outcomes could be unknown")
	case s.ttl > s.quarantine:
		return fmt.Errorf("reqlock: WithTTL: %v is more than the quarantine of the quorum, %v: "+
			"a server that was restarted could vote for another while the lease is held; see WithQuarantine", s.ttl, s.quarantine)
	}
	return nil
}

// errNoRecords says why a quorum does not run idempotent requests.
var errNoRecords = fmt.Errorf("reqlock: %w by a quorum: an idempotent request needs a record that one server keeps; "+
	"give it a locker of New, WithReplicas perhaps", errors.ErrUnsupported)
