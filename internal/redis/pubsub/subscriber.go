package pubsub

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/inflight"
	"github.com/reqlock/reqlock/internal/redis/keyspace"
	"github.com/reqlock/reqlock/internal/redis/topology"
)

// A Subscriber receives the hints of one process. It is safe for concurrent use.
type Subscriber struct {
	shared  *sharedSubscription
	sharded *shardedSubscriptions // nil without a cluster client
	mode    atomic.Value          // a string: see Mode
}

// errUnreadable says that a connection was given up.
var errUnreadable = errors.New("reqlock: a server, or a proxy before it, sends messages of a subscription in a form that " +
	"go-redis cannot read: each time, the connection is made anew")

// New returns the Subscriber of a process. It calls hint for each hint, and for each key
// after a gap in a subscription. It calls warn once if a server sends what cannot be read. New
// does no I/O. Each goroutine of the Subscriber counts in work.
func New(
	rdb redis.UniversalClient, names keyspace.Names, process string, work *inflight.Counter,
	hint func(key, token string), warn func(error),
) *Subscriber {
	s := &Subscriber{}
	unreadable := sync.OnceFunc(func() { warn(errUnreadable) })
	decoder := hintDecoder{names: names, process: process, hint: hint}
	s.shared = &sharedSubscription{
		subscription: subscription{rdb: rdb, channel: names.ProcessChannel(process), timing: defaultTiming(), unreadable: unreadable},
		hintDecoder:  decoder,
		work:         work,
		keys:         make(map[string]*sharedKey),
	}
	switch client := rdb.(type) {
	case topology.Server:
		s.mode.Store(plain)
	case topology.Cluster:
		s.mode.Store(oneMaster)
		s.sharded = newSharded(client, decoder, s.shared, work, func(mode string) { s.mode.Store(mode) })
	default: // it may be a cluster behind a wrapper
		s.mode.Store(uncounted)
	}
	return s
}

// The modes: how scripts publish hints. See queue.lua.
const (
	plain       = "P" // by PUBLISH
	oneMaster   = "S" // by SPUBLISH
	manyMasters = "M" // by SPUBLISH, in a cluster in which PUBLISH sends to many nodes
	uncounted   = "B" // by PUBLISH without regard to the number of subscribers
)

// SetName names the connections of the subscriptions in the server's CLIENT LIST; "" leaves them
// without a name of their own. Call it before the first call of Listen.
func (s *Subscriber) SetName(name string) { s.shared.connectionName = name }

// Mode returns how scripts publish hints.
func (s *Subscriber) Mode() any { return s.mode.Load() }

// Listen subscribes to the hints for a key. All keys share a subscription; in a cluster,
// all keys at a master do. The server's confirmation closes ready; after Close, ready is
// never closed. stop ends the subscription to the key; further calls of stop do nothing.
// Listen does no I/O.
func (s *Subscriber) Listen(key string) (ready <-chan struct{}, stop func()) {
	if s.sharded != nil {
		return s.sharded.listen(key)
	}
	return s.shared.listen(key)
}

// Close ends all subscriptions. It does not wait for their goroutines, which count in the
// work.
func (s *Subscriber) Close() {
	if s.sharded != nil {
		s.sharded.close()
	}
	s.shared.close()
}

// named returns a client whose next connections of a subscription have the name. It shares the pools,
// the hooks and the limits of rdb, whose own connections keep their names. It is rdb itself if there
// is no name, or if rdb is a cluster or is wrapped by another type, which may change what Subscribe
// does.
//
// HELLO sets the name, not CLIENT SETNAME: an ACL cannot refuse HELLO to a user. If the server does
// not know HELLO, or a proxy refuses it, the connection has no name.
func named(rdb redis.UniversalClient, name string) redis.UniversalClient {
	client, ok := rdb.(*redis.Client)
	if name == "" || !ok {
		return rdb
	}
	from := client.Options()
	clone := client.WithTimeout(from.ReadTimeout) // the only function that copies the options
	o := clone.Options()
	o.WriteTimeout = from.WriteTimeout
	before := o.OnConnect
	o.OnConnect = func(ctx context.Context, conn *redis.Conn) error {
		if before != nil {
			if err := before(ctx, conn); err != nil {
				return err
			}
		}
		_ = conn.Hello(ctx, o.Protocol, "", "", name).Err()
		return nil
	}
	return clone
}

// A hintDecoder decodes messages into hints.
type hintDecoder struct {
	names   keyspace.Names
	process string
	hint    func(key, token string)
}

// decode calls the hint function if the message is a hint for a known key. keyOf returns
// the key of a lock's name while the key has a listener. Without a listener, the decoder
// derives the key from the name, which is impossible if the name contains a digest.
func (d *hintDecoder) decode(payload string, keyOf func(name string) (key string, ok bool)) {
	token, name, ok := keyspace.ParseHint(payload, d.process)
	if !ok {
		return
	}
	key, known := keyOf(name)
	if !known {
		key, known = d.names.Key(name)
	}
	if known {
		d.hint(key, token)
	}
}
