package pubsub

import (
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/inflight"
	"github.com/reqlock/reqlock/internal/redis/keyspace"
	"github.com/reqlock/reqlock/internal/redis/topology"
)

// A Subscriber receives the hints of one process. It is safe for concurrent use.
type Subscriber struct {
	listeners *listeners
	sharded   *sharded     // nil where hints come on listeners alone
	mode      atomic.Value // a string: see Mode
}

// New returns a Subscriber of a process, which calls hint for each hint, and
// for each key after a gap in a subscription. It does no I/O. Each goroutine of it counts
// in work.
func New(rdb redis.UniversalClient, names keyspace.Names, process string, work *inflight.Counter, hint func(key, token string)) *Subscriber {
	s := &Subscriber{}
	hear := hearer{names: names, process: process, hint: hint}
	s.listeners = &listeners{
		subscription: subscription{rdb: rdb, channel: names.ProcessChannel(process), pace: defaultPace()},
		hearer:       hear,
		work:         work,
		keys:         make(map[string]*listener),
	}
	switch client := rdb.(type) {
	case topology.Server:
		s.mode.Store("P")
	case topology.Cluster:
		s.mode.Store("S")
		s.sharded = newSharded(client, hear, s.listeners, work, func() { s.mode.Store("B") })
	default: // it may be a cluster behind a wrapper
		s.mode.Store("B")
	}
	return s
}

// Mode returns how scripts publish hints: "P" by PUBLISH, "S" by SPUBLISH, "B" by PUBLISH
// to processes that count as listening whether they do or not: see queue.lua.
func (s *Subscriber) Mode() any { return s.mode.Load() }

// Listen subscribes to the hints for a key. All keys share a subscription, or all keys on
// a master of a cluster. ready is closed when the server has confirmed it; after Close
// it never is. stop ends it, and may be called several times. Listen does no I/O.
func (s *Subscriber) Listen(key string) (ready <-chan struct{}, stop func()) {
	if s.sharded != nil {
		return s.sharded.listen(key)
	}
	return s.listeners.listen(key)
}

// Close ends all subscriptions. It does not wait for them: they count in the work.
func (s *Subscriber) Close() {
	if s.sharded != nil {
		s.sharded.close()
	}
	s.listeners.close()
}
