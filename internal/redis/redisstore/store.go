package redisstore

import (
	"context"
	"encoding/hex"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/inflight"
	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/keyspace"
	"github.com/reqlock/reqlock/internal/redis/pipeline"
	"github.com/reqlock/reqlock/internal/redis/pubsub"
	"github.com/reqlock/reqlock/internal/redis/script"
	"github.com/reqlock/reqlock/internal/redis/topology"
	"github.com/reqlock/reqlock/internal/store"
)

// Store runs the transitions of locks on one Redis, for one process. It implements
// store.Store and is safe for concurrent use.
type Store struct {
	rdb      redis.UniversalClient // for Search; the pipeline sends all else
	names    keyspace.Names
	scripts  script.Set
	pipeline *pipeline.Pipeline
	// needsReplicas is set if replicas have to acknowledge grants.
	needsReplicas bool

	acquires pool[acquireOp]
	renewals pool[renewOp]
	releases pool[releaseOp]
	compares pool[compareOp]

	channelPrefix any // an argument of the scripts: see queue.lua
	subscriber    subscriber
	hint          func(key, token string)
	lateGrant     func(key, token string)
	warning       func(error)
	// work counts the sends in flight and the subscriptions.
	work inflight.Counter
	// isModern is set after a server has replied to SET with both NX and GET, which servers before
	// Redis 7 refuse.
	isModern atomic.Bool
	native   support
}

var (
	_ store.Store    = (*Store)(nil)
	_ store.Searcher = (*Store)(nil)
	_ store.Comparer = (*Store)(nil)
)

// A subscriber receives hints. It is a pubsub.Subscriber, except in tests.
type subscriber interface {
	Listen(key string) (ready <-chan struct{}, stop func())
	Mode() any
	SetName(name string)
	Close()
}

// Replicas says how many replicas must have a write before it counts. The zero value means
// none.
type Replicas = command.Replicas

// CheckClient returns an error for a client that cannot keep a lock: see
// topology.CheckClient.
func CheckClient(rdb redis.UniversalClient) error { return topology.CheckClient(rdb) }

// CheckReplicas returns an error if replicas cannot acknowledge writes of the client: see
// command.CheckReplicas.
func CheckReplicas(rdb redis.UniversalClient, replicas Replicas) error {
	return command.CheckReplicas(rdb, replicas)
}

// NewProcess returns a new id of a process: a random UUID (RFC 9562, version 4) as 32 hex digits,
// without hyphens. See New.
func NewProcess() string {
	id := uuid.New()
	return hex.EncodeToString(id[:])
}

// New returns a Store that sends commands through rdb. All its keys begin with the prefix. It
// does no I/O. It returns an error for a prefix with an unbalanced hash tag, and for replicas
// that CheckReplicas refuses.
//
// The process is an id of 32 hex digits that no other Store ever has. Each token in a request
// to the Store must be this id, a colon and a number.
//
// A grant, a renewal, a hand-off and a commit count once the replicas have acknowledged them:
// see the package comment.
func New(rdb redis.UniversalClient, prefix, process string, replicas Replicas) (*Store, error) {
	return newOfWidth(rdb, prefix, process, replicas, pipeline.Width)
}

// newOfWidth is New with at most width commands in a batch.
func newOfWidth(rdb redis.UniversalClient, prefix, process string, replicas Replicas, width int) (*Store, error) {
	if err := keyspace.CheckPrefix(prefix); err != nil {
		return nil, err
	}
	if err := CheckReplicas(rdb, replicas); err != nil {
		return nil, err
	}
	s := &Store{
		rdb:           rdb,
		names:         keyspace.New(prefix),
		scripts:       script.New(replicas.Wanted()),
		needsReplicas: replicas.Wanted(),
		channelPrefix: prefix,
		hint:          func(string, string) {},
		lateGrant:     func(string, string) {},
		warning:       func(error) {},
	}
	s.pipeline = pipeline.New(rdb, &s.work, replicas, width)
	s.subscriber = pubsub.New(rdb, s.names, process, &s.work,
		func(key, token string) { s.hint(key, token) }, func(err error) { s.warning(err) })
	return s, nil
}

// OnHint registers the function that is called with each hint, and after each gap in a
// subscription: see store.Store.
func (s *Store) OnHint(hint func(key, token string)) { s.hint = hint }

// OnLateGrant registers the function that is called with each grant that arrives after its
// request has failed: see store.Store.
func (s *Store) OnLateGrant(lateGrant func(key, token string)) { s.lateGrant = lateGrant }

// OnWarning registers the function that is called with what an operator should know: see
// store.Store.
func (s *Store) OnWarning(warning func(error)) { s.warning = warning }

// NameSubscription names the connections of the subscription, for CLIENT LIST; "" leaves them
// without a name. Call it before the first call of Listen.
func (s *Store) NameSubscription(name string) { s.subscriber.SetName(name) }

// OnOutage registers the function that is called when an outage of a server begins, and when it
// ends: see store.Store.
func (s *Store) OnOutage(outage func(store.Outage)) { s.pipeline.OnOutage(outage) }

// CountRefused counts a caller that an outage has refused: see store.Store.
func (s *Store) CountRefused(key string) (counted bool) {
	return s.pipeline.CountRefused(s.names.AppendLock(nil, key))
}

// CountUnlocked says that a counted caller runs without the lock: see store.Store.
func (s *Store) CountUnlocked(key string) { s.pipeline.CountUnlocked(s.names.AppendLock(nil, key)) }

// Watch makes the Store record since when servers have not served any command: see
// store.Store.
func (s *Store) Watch() { s.pipeline.Watch(s.probe) }

// Unserved returns since when the master of the key has not served any command, and why: see
// store.Store.
func (s *Store) Unserved(key string) (since time.Time, why error) {
	if s.pipeline.AllServed() {
		return time.Time{}, nil
	}
	since, why = s.pipeline.Unserved(s.names.AppendLock(nil, key))
	if why != nil {
		why = command.Sanitize(why)
	}
	return since, why
}

// probe returns a write that changes nothing: it removes a token that no process has from
// the queue of a lock. A read would not do, because a master that was demoted serves reads.
func (s *Store) probe(lock []byte) command.Command {
	queue := string(s.names.AppendCompanion(nil, lock, keyspace.QueueSuffix))
	return command.New(1, []any{"lrem", queue, 0, ""})
}

// Listen subscribes this process to hints for the key until stop is called. The keys of a
// Store share one subscription; in a cluster, the keys of a master do. ready is closed once
// the subscription is confirmed.
func (s *Store) Listen(key string) (ready <-chan struct{}, stop func()) {
	return s.subscriber.Listen(key)
}

// Close ends the subscriptions, and waits for them and for the commands in flight until ctx
// ends. It ends the subscriptions even if ctx has ended before. It may be called several
// times.
func (s *Store) Close(ctx context.Context) error {
	s.subscriber.Close()
	s.pipeline.Close()
	return s.work.Wait(ctx)
}
