package core

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/engine"
	"github.com/reqlock/reqlock/internal/redis/quorumstore"
)

// NewQuorum returns a Locker whose locks are held on a majority of several Redis
// servers that know nothing of each other: as long as a majority is up, it takes
// and keeps locks, and no two hold the same one. The algorithm is Redlock, by
// Salvatore Sanfilippo, with a pause for servers that have just started: see
// WithQuarantine. It is used as a Locker of New is, with Lock, Do, Enter and the
// middlewares. It does no I/O.
//
// The clients are those of an odd number of servers, three or more, each alone: a
// client of Sentinel or of a cluster is refused. They are not used themselves; the
// Locker connects by their Options, without their hooks, and closes its connections
// in Close. Two clients that lead to the same server are found out when they
// connect: then no lock is granted, and the error says so.
//
// What takes one server that knows everything is refused: fencing numbers
// (WithFencing), idempotent requests (Begin, Resolve and the Idempotent
// middlewares), and WithReplicas. Waiters of several processes do not stand in one
// line: who comes first when a lock is free gets it, so one may wait for longer
// than those who came after him.
//
// It is exclusive as long as the clocks of servers and clients run at nearly the
// same speed, a holder heeds the end of its lease's context, and no server forgets
// a vote but by a restart, after which its clock is not put forward: that would end its
// quarantine. A resource that must not be hurt by a holder that was
// paused for longer than its lease needs fencing, which a quorum does not have.
//
// A bad setting, or client, is an error that names it.
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
	process, err := newProcess()
	if err != nil {
		return nil, fmt.Errorf("reqlock: NewQuorum: %w", err)
	}
	quorum, err := quorumstore.New(clients, s.prefix, process, s.quarantine)
	if err != nil {
		return nil, fmt.Errorf("reqlock: NewQuorum: %w", err)
	}
	config := s.engineConfig(process)
	config.Ballots = true
	return &Locker{quorum: quorum, engine: engine.New(quorum, config), settings: s}, nil
}

// minServers is how many servers a quorum has at least: with fewer, each one that
// is down would be one too many.
const minServers = 3

// checkServers refuses what is no quorum.
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

// WithQuarantine sets for how long a server of a quorum gives no votes after it has
// started: for the TTL of NewQuorum if not set, and never less. It may have
// forgotten for whom it voted before, and that lease may still be held. The server
// says itself for how long it has run, in whole seconds, so it may take a second
// more. No lease of this Locker or its views may have a longer TTL.
//
// All processes that share the servers need the same, or more. Only NewQuorum takes
// it.
func WithQuarantine(d time.Duration) Option {
	return rootOption{"WithQuarantine", func(r *root) error {
		if d <= 0 {
			return fmt.Errorf("reqlock: WithQuarantine: %v is not positive", d)
		}
		r.quarantine = d
		return nil
	}}
}

// checkQuorum refuses what a quorum cannot do.
func (s *settings) checkQuorum() error {
	switch {
	case s.quarantine == 0:
		return nil
	case s.fencing:
		return errors.New("reqlock: WithFencing: a quorum has no counter that all its servers share, so its numbers could fall")
	case s.replicas.Count > 0:
		return errors.New("reqlock: WithReplicas: the servers of a quorum are alone, and their votes need no replicas")
	case s.ttl > s.quarantine:
		return fmt.Errorf("reqlock: WithTTL: %v is more than the quarantine of the quorum, %v: "+
			"a server that was restarted could vote for another while the lease is held; see WithQuarantine", s.ttl, s.quarantine)
	}
	return nil
}

// errNoRecords is why a quorum runs no idempotent requests.
var errNoRecords = fmt.Errorf("reqlock: %w by a quorum: an idempotent request needs a record that one server keeps; "+
	"give it a locker of New, WithReplicas perhaps", errors.ErrUnsupported)

// KeepsRecords reports whether the Locker runs idempotent requests: one of NewQuorum
// does not. A middleware for them can refuse such a Locker.
func (l *Locker) KeepsRecords() bool { return l.quorum == nil }
