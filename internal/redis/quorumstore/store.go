package quorumstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/inflight"
	"github.com/reqlock/reqlock/internal/redis/redisstore"
	"github.com/reqlock/reqlock/internal/store"
)

// A server is one server of the quorum.
type server interface {
	Vote(r redisstore.VoteRequest, done func(store.Answer, error))
	Renew(r store.RenewRequest, done func(store.Renewal, error))
	Withdraw(r redisstore.WithdrawRequest, done func(store.ReleaseResult, error))
	Listen(key string) (ready <-chan struct{}, stop func())
	OnHint(hint func(key, token string))
	OnLateGrant(lateGrant func(key, token string))
	OnWarning(warning func(error))
	OnOutage(outage func(store.Outage))
	NameSubscription(name string)
	CountRefused(key string) (counted bool)
	CountUnlocked(key string)
	Watch()
	Unserved(key string) (since time.Time, why error)
	Close(ctx context.Context) error
}

// Store keeps locks on several servers. It implements store.Store, except fencing numbers,
// attempts and shared leases: these need one server that has the whole state. It is safe for
// concurrent use.
type Store struct {
	servers    []server
	clients    []*redis.Client
	membership *membership
	// majority is the number of votes that grants a lock.
	majority    int
	hints       hintQuorum
	withdrawals []*withdrawals   // by server
	work        inflight.Counter // goroutines and timers of this package
	// lateGrant and warning are set before the first transition.
	lateGrant func(key, token string)
	warning   func(error)

	mu sync.Mutex
	// ballots has each ballot until it is lost or released.
	ballots map[ballotID]*ballot
}

// A ballotID identifies a ballot. The token alone does not identify it: a forged hint can
// name the token of a ballot with another key, and the engine then releases the token from
// that key.
type ballotID struct{ key, token string }

// ballotIDOf returns the id of a request's ballot.
func ballotIDOf(r store.Target) ballotID { return ballotID{r.Key, r.Token} }

var _ store.Store = (*Store)(nil)

// New returns a Store on the servers of these clients. It copies the options of the clients
// and makes clients of its own. It does no I/O. The error names the client that cannot be
// used for a quorum, or the problem with the prefix.
//
// A server does not vote until it has run for the quarantine. The prefix and the process are
// used as in redisstore.New.
func New(clients []redis.UniversalClient, prefix, process string, quarantine time.Duration) (*Store, error) {
	s := &Store{
		membership: newMembership(len(clients), quarantine),
		majority:   len(clients)/2 + 1,
		ballots:    make(map[ballotID]*ballot),

		lateGrant: func(string, string) {},
		warning:   func(error) {},
	}
	s.hints = hintQuorum{majority: s.majority, work: &s.work, deliver: func(string, string) {}}
	for i, given := range clients {
		client, err := s.membership.connect(i, given)
		if err != nil {
			_ = s.Disconnect()
			return nil, fmt.Errorf("client %d %w", i, err)
		}
		s.clients = append(s.clients, client)
		one, err := redisstore.New(client, prefix, process, redisstore.Replicas{})
		if err != nil {
			_ = s.Disconnect()
			return nil, fmt.Errorf("WithPrefix: the prefix %w", err)
		}
		s.addServer(one)
	}
	return s, nil
}

// addServer adds a server to the quorum.
func (s *Store) addServer(one server) {
	i := len(s.servers)
	one.OnHint(func(key, token string) { s.hints.receive(i, key, token) })
	one.OnLateGrant(func(key, token string) { s.lateGrant(key, token) })
	one.OnWarning(func(err error) { s.warning(err) })
	one = &gate{server: one, membership: s.membership, index: i, work: &s.work}
	s.servers = append(s.servers, one)
	s.withdrawals = append(s.withdrawals, &withdrawals{server: one, work: &s.work})
}

// Clients returns the clients that the Store uses, in the order of the servers.
func (s *Store) Clients() []*redis.Client { return s.clients }

// Duplicate returns an error if two clients are connected to the same server.
func (s *Store) Duplicate() error { return s.membership.duplicate() }

// Take requests the votes of all servers.
func (s *Store) Take(r store.TakeRequest, done func(store.Answer, error)) {
	s.vote(redisstore.VoteRequest{Target: r.Target, Claim: r.TTL}, done)
}

// Enqueue requests the votes of all servers. If r.Join is set, r.Waiter joins the queue of
// each server. A request for a shared lease must not be made: it has a fault.
func (s *Store) Enqueue(r store.EnqueueRequest, done func(store.Answer, error)) {
	if r.Limit.IsShared() {
		refuse(s, errNoShared, done)
		return
	}
	s.vote(redisstore.VoteRequest{Target: r.Target, Claim: r.Claim, Join: r.Join, Waiter: r.Waiter, Brief: !r.WithHolder}, done)
}

// vote requests the votes of all servers for a new ballot.
func (s *Store) vote(r redisstore.VoteRequest, done func(store.Answer, error)) {
	b := newBallot(s, r, done)
	s.mu.Lock()
	s.ballots[ballotIDOf(r.Target)] = b
	s.mu.Unlock()
	generations := s.membership.generations()
	for i := range s.servers {
		b.ask(i, r, generations, func(vote) {})
	}
}

// Resolve must not be called: a quorum has no attempts. It reports a fault.
func (s *Store) Resolve(_ store.ResolveRequest, done func(store.ResolveStatus, error)) {
	refuse(s, errNoRecords, done)
}

// Outcome must not be called, as Resolve.
func (s *Store) Outcome(_ store.OutcomeRequest, done func(store.Outcome, error)) {
	refuse(s, errNoRecords, done)
}

// refuse reports the permanent fault of a transition that a quorum does not have.
func refuse[T any](s *Store, why error, done func(T, error)) {
	s.work.Add()
	go func() {
		defer s.work.Done()
		var none T
		done(none, &store.Fault{Err: why})
	}()
}

// The reasons why a quorum does not have a transition.
var (
	errNoRecords = errors.New("a quorum keeps no records of requests")
	errNoShared  = errors.New("a quorum grants no shared leases: each server would count others")
)

// OnHint registers the function that receives hints. It is called once when a majority of
// the servers has sent a hint. It is called after hintDelay if fewer servers have sent it.
func (s *Store) OnHint(hint func(key, token string)) { s.hints.deliver = hint }

// OnLateGrant registers the function that receives late grants. It is called for each vote
// of a server that granted a ballot after the Store had abandoned the command.
func (s *Store) OnLateGrant(lateGrant func(key, token string)) { s.lateGrant = lateGrant }

// OnWarning registers the function that receives the warnings of all servers.
func (s *Store) OnWarning(warning func(error)) { s.warning = warning }

// OnOutage registers the function that is called for an outage of each server.
func (s *Store) OnOutage(outage func(store.Outage)) {
	for _, one := range s.servers {
		one.OnOutage(outage)
	}
}

// NameSubscription names the connections of the subscriptions to all servers.
func (s *Store) NameSubscription(name string) {
	for _, one := range s.servers {
		one.NameSubscription(name)
	}
}

// CountRefused counts the caller for each server that has an outage.
func (s *Store) CountRefused(key string) (counted bool) {
	for _, one := range s.servers {
		counted = one.CountRefused(key) || counted
	}
	return counted
}

// CountUnlocked says so for each server that has an outage.
func (s *Store) CountUnlocked(key string) {
	for _, one := range s.servers {
		one.CountUnlocked(key)
	}
}

// Close stops all subscriptions, and waits until all operations have ended or ctx ends. It
// may be called several times.
func (s *Store) Close(ctx context.Context) error {
	var failed error
	for _, w := range s.withdrawals {
		w.close()
	}
	for _, one := range s.servers {
		if err := one.Close(ctx); err != nil {
			failed = err
		}
	}
	if failed != nil {
		return failed
	}
	return s.work.Wait(ctx)
}

// Disconnect closes the connections to all servers. The Store cannot be used afterwards.
func (s *Store) Disconnect() error {
	failures := make([]error, len(s.clients))
	for i, client := range s.clients {
		failures[i] = client.Close()
	}
	return errors.Join(failures...)
}

// ballotOf returns the ballot of a request, or nil if it is unknown, lost or released.
func (s *Store) ballotOf(r store.Target) *ballot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ballots[ballotIDOf(r)]
}

// removeBallot removes a ballot that is lost or released.
func (s *Store) removeBallot(r store.Target) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.ballots, ballotIDOf(r))
}
