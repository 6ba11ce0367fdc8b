package redisstore

import (
	"context"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/inflight"
	"github.com/reqlock/reqlock/internal/redis/keyspace"
	"github.com/reqlock/reqlock/internal/redis/pipeline"
	"github.com/reqlock/reqlock/internal/redis/pubsub"
	"github.com/reqlock/reqlock/internal/redis/script"
	"github.com/reqlock/reqlock/internal/store"
)

// Store speaks the lock's wire protocol with one Redis, for one process. It
// implements store.Store and is safe for concurrent use.
type Store struct {
	names    keyspace.Names
	scripts  script.Set
	pipeline *pipeline.Pipeline
	// acknowledged is set where replicas have to acknowledge what is granted.
	acknowledged bool

	asks     pool[asking]
	renewals pool[renewing]
	releases pool[releasing]

	channelPrefix any // of the hints; see queue.lua
	subscriber    subscriber
	hint          func(key, token string)
	lateGrant     func(key, token string)
	// work counts the sends under way and the subscriptions.
	work inflight.Counter
	// oldServer is set once the server turned out to be older than Redis 7,
	// which introduced SET with both NX and GET.
	oldServer atomic.Bool
}

var _ store.Store = (*Store)(nil)

// A subscriber receives hints: a pubsub.Subscriber.
type subscriber interface {
	Listen(key string) (ready <-chan struct{}, stop func())
	Mode() any
	Close()
}

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
	if err := keyspace.CheckPrefix(prefix); err != nil {
		return nil, err
	}
	if err := CheckReplicas(rdb, replicas); err != nil {
		return nil, err
	}
	s := &Store{
		names:         keyspace.New(prefix),
		scripts:       script.New(replicas.Wanted()),
		acknowledged:  replicas.Wanted(),
		channelPrefix: prefix,
		hint:          func(string, string) {},
		lateGrant:     func(string, string) {},
	}
	s.pipeline = pipeline.New(rdb, &s.work, replicas)
	s.subscriber = pubsub.New(rdb, s.names, process, &s.work, func(key, token string) { s.hint(key, token) })
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
	return s.subscriber.Listen(key)
}

// Close ends the subscriptions, also when ctx has ended, and waits for them and
// for commands that were left behind. It may be called several times.
func (s *Store) Close(ctx context.Context) error {
	s.subscriber.Close()
	return s.work.Wait(ctx)
}
