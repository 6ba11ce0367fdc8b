package redisstore

import (
	"context"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/inflight"
	"github.com/reqlock/reqlock/internal/store"
)

// Store speaks the lock's wire protocol with one Redis, for one process. It
// implements store.Store and is safe for concurrent use.
type Store struct {
	names   names
	scripts scripts
	routes

	asks     pool[asking]
	renewals pool[renewing]
	releases pool[releasing]

	// channelPrefix and mode are those of the hints; see line.lua.
	channelPrefix any
	mode          atomic.Value // text
	hint          func(key, token string)
	lateGrant     func(key, token string)
	listeners     *listeners
	sharded       *sharded // nil where hints come on listeners alone
	// work counts the sends under way and the subscriptions.
	work inflight.Counter
	// oldServer is set once the server turned out to be older than Redis 7,
	// which introduced SET with both NX and GET.
	oldServer atomic.Bool
}

var _ store.Store = (*Store)(nil)

// New returns a Store that sends through rdb and writes every key behind the
// prefix. It does no I/O. It refuses a prefix with half a hash tag, and replicas
// as CheckReplicas does.
//
// The process is an id of 32 hex digits that no other Store ever has. Each
// token that the Store is given must be this id, a colon and a number.
//
// What is granted, renewed, handed over or committed counts once the replicas
// have it: see the package comment.
func New(rdb redis.UniversalClient, prefix, process string, replicas Replicas) (*Store, error) {
	if err := checkPrefix(prefix); err != nil {
		return nil, err
	}
	if err := CheckReplicas(rdb, replicas); err != nil {
		return nil, err
	}
	s := &Store{
		names:         newNames(prefix),
		scripts:       newScripts(replicas.wanted()),
		channelPrefix: prefix,
		hint:          func(string, string) {},
		lateGrant:     func(string, string) {},
	}
	s.open(rdb, &s.work, replicas)
	hear := hearer{names: s.names, process: process, hint: func(key, token string) { s.hint(key, token) }}
	s.listeners = &listeners{
		subscription: subscription{rdb: rdb, channel: prefix + process, pace: defaultPace()},
		hearer:       hear,
		work:         &s.work,
		keys:         make(map[string]*listener),
	}
	switch client := rdb.(type) {
	case serverClient:
		s.mode.Store("P")
	case clusterClient:
		s.mode.Store("S")
		s.sharded = newSharded(client, hear, s.listeners, &s.work, func() { s.mode.Store("B") })
	default: // nobody knows what is behind it: a cluster, maybe
		s.mode.Store("B")
	}
	return s, nil
}

// OnHint registers the function that is called for messages, and for gaps in the
// subscription.
func (s *Store) OnHint(hint func(key, token string)) { s.hint = hint }

// OnLateGrant registers the function that is called for grants to commands that were
// left behind.
func (s *Store) OnLateGrant(lateGrant func(key, token string)) { s.lateGrant = lateGrant }

// Listen makes this process one that listens, with a subscription that all
// keys share, or all those on a master of a cluster.
func (s *Store) Listen(key string) (ready <-chan struct{}, stop func()) {
	if s.sharded != nil {
		return s.sharded.listen(key)
	}
	return s.listeners.listen(key)
}

// Close ends the subscriptions, also when ctx has ended, and waits for them and
// for commands that were left behind. It may be called several times.
func (s *Store) Close(ctx context.Context) error {
	if s.sharded != nil {
		s.sharded.close()
	}
	s.listeners.close()
	return s.work.Wait(ctx)
}
