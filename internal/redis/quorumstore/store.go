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

// A server is one of those that vote.
type server interface {
	Vote(r redisstore.VoteRequest, done func(store.Answer, error))
	Renew(r store.RenewRequest, done func(store.Renewal, error))
	Withdraw(r redisstore.WithdrawRequest, done func(store.ReleaseResult, error))
	Listen(key string) (ready <-chan struct{}, stop func())
	OnHint(hint func(key, token string))
	OnLateGrant(lateGrant func(key, token string))
	Close(ctx context.Context) error
}

// Store keeps locks on several servers. It implements store.Store, but for what
// takes one server that knows everything: fencing numbers and attempts. It is safe
// for concurrent use.
type Store struct {
	servers []server
	clients []*redis.Client
	muster  *muster
	// majority is how many votes it takes.
	majority int
	echoes   echoes
	debts    []*debts         // by server
	work     inflight.Counter // goroutines and timers of this package
	// lateGrant is set before the first transition.
	lateGrant func(key, token string)

	mu sync.Mutex
	// ballots are those with a vote that is not withdrawn.
	ballots map[ballotID]*ballot
}

// A ballotID names a ballot. The token alone does not: a hint can be forged, and name the
// token of a ballot in another key, from which the token is then released.
type ballotID struct{ key, token string }

// ballotIDOf returns the id of a request's ballot.
func ballotIDOf(r store.Target) ballotID { return ballotID{r.Key, r.Token} }

var _ store.Store = (*Store)(nil)

// New returns a Store on the servers of these clients, which it does not use
// itself: it connects by their options. It does no I/O. An error says which client
// is no server of a quorum, or what is wrong with the prefix.
//
// A server gives no votes until it has run for the quarantine. The prefix and the
// process are those of redisstore.New.
func New(clients []redis.UniversalClient, prefix, process string, quarantine time.Duration) (*Store, error) {
	s := &Store{
		muster:   newMuster(len(clients), quarantine),
		majority: len(clients)/2 + 1,
		ballots:  make(map[ballotID]*ballot),

		lateGrant: func(string, string) {},
	}
	s.echoes = echoes{majority: s.majority, work: &s.work, tell: func(string, string) {}}
	for i, given := range clients {
		client, err := s.muster.connect(i, given)
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
		s.join(one)
	}
	return s, nil
}

// join makes a server one of those that vote.
func (s *Store) join(one server) {
	i := len(s.servers)
	one.OnHint(func(key, token string) { s.echoes.hear(i, key, token) })
	one.OnLateGrant(func(key, token string) { s.lateGrant(key, token) })
	one = &gate{server: one, muster: s.muster, index: i, work: &s.work}
	s.servers = append(s.servers, one)
	s.debts = append(s.debts, &debts{server: one, work: &s.work})
}

// Clients returns the clients by which the servers are asked, in their order.
func (s *Store) Clients() []*redis.Client { return s.clients }

// Double returns why the servers are no quorum, if two clients have led to the same
// one.
func (s *Store) Double() error { return s.muster.double() }

// Take asks all servers for their votes.
func (s *Store) Take(r store.TakeRequest, done func(store.Answer, error)) {
	s.vote(redisstore.VoteRequest{Target: r.Target, Claim: r.TTL}, done)
}

// Enqueue does the same, and lets the request's Waiter join their lines.
func (s *Store) Enqueue(r store.EnqueueRequest, done func(store.Answer, error)) {
	s.vote(redisstore.VoteRequest{Target: r.Target, Claim: r.Claim, Join: r.Join, Waiter: r.Waiter}, done)
}

// vote asks all servers for their votes for a ballot.
func (s *Store) vote(r redisstore.VoteRequest, done func(store.Answer, error)) {
	b := newBallot(s, r, done)
	s.mu.Lock()
	s.ballots[ballotIDOf(r.Target)] = b
	s.mu.Unlock()
	moves := s.muster.moves()
	for i := range s.servers {
		b.ask(i, r, moves, func(vote) {})
	}
}

// Resolve is not to be called: there are no attempts.
func (s *Store) Resolve(_ store.ResolveRequest, done func(running bool, err error)) {
	s.work.Add()
	go func() {
		defer s.work.Done()
		done(false, &store.Fault{Err: errNoRecords})
	}()
}

var errNoRecords = errors.New("a quorum keeps no records of requests")

// OnHint registers the function that hears of what a majority of the servers has
// said, and a little later of what fewer of them have.
func (s *Store) OnHint(hint func(key, token string)) { s.echoes.tell = hint }

// OnLateGrant registers the function that is called for each vote for a ballot whose
// question was left behind.
func (s *Store) OnLateGrant(lateGrant func(key, token string)) { s.lateGrant = lateGrant }

// Close ends all listening, and waits for what is under way. It may be called
// several times.
func (s *Store) Close(ctx context.Context) error {
	var failed error
	for _, owed := range s.debts {
		owed.close()
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

// Disconnect closes the connections to all servers. Nothing can be sent after it.
func (s *Store) Disconnect() error {
	failures := make([]error, len(s.clients))
	for i, client := range s.clients {
		failures[i] = client.Close()
	}
	return errors.Join(failures...)
}

// ballotOf returns the ballot of a request, if it is not withdrawn; nil if there
// is none.
func (s *Store) ballotOf(r store.Target) *ballot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ballots[ballotIDOf(r)]
}

// forget forgets a ballot of which nothing is left.
func (s *Store) forget(r store.Target) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.ballots, ballotIDOf(r))
}
