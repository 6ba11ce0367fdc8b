package lock

import (
	"context"
	"fmt"
	"time"

	"github.com/reqlock/reqlock/tests/bench/internal/wire"
)

// TTL is how long a lock lives without renewal, the same for all kinds. It is
// long enough that no run sees a lock expire.
const TTL = 10 * time.Second

// A Locker is a lock as one process uses it. It is safe for concurrent use.
type Locker interface {
	// Lock takes the lock of a key, and waits for it until ctx ends.
	Lock(ctx context.Context, key string) (Held, error)
	// Close ends the connections of the Locker, when nothing is locked.
	Close() error
}

// Held is a lock that is held. Kinds whose own type has this method return it
// as it is, so that the interface costs no allocation.
type Held interface {
	// Release gives the lock back and returns when Redis has confirmed it.
	Release(ctx context.Context) error
}

// A Config says how a Locker reaches Redis.
type Config struct {
	Addrs    []string      // one, those of the masters of a cluster, or of a quorum's servers
	Commands *wire.Counter // counts what the Locker sends
}

// A Name names a kind of lock.
type Name string

// The kinds of lock.
const (
	Reqlock           Name = "reqlock"
	ReqlockPlain      Name = "reqlock plain"
	ReqlockFenced     Name = "reqlock fenced"
	Redislock         Name = "redislock"
	Redsync           Name = "redsync"
	Rueidislock       Name = "rueidislock"
	RueidislockNoLoop Name = "rueidislock noloop"
	Raw               Name = "raw go-redis"
	ReqlockReplica    Name = "reqlock acknowledged"
	RawReplica        Name = "raw SET+WAIT"
	ReqlockQuorum     Name = "reqlock quorum"
	RedsyncQuorum     Name = "redsync quorum"
	Channel           Name = "channel"
)

// A Place is the Redis that a lock is made for.
type Place int

// The places.
const (
	Anywhere  Place = iota // one server, or a cluster
	OnReplica              // a master with replicas
	OnQuorum               // servers that know nothing of each other
)

// A Kind is one of the locks that are compared.
type Kind struct {
	Name    Name
	Module  string // where its version can be looked up; empty for none
	Setting string // how it is used here, in words
	Open    func(Config) (Locker, error)
	Place   Place
}

// Kinds returns all kinds, reqlock first.
func Kinds() []Kind {
	return []Kind{
		{Reqlock, "github.com/reqlock/reqlock", "its defaults, on a client with ContextTimeoutEnabled", openReqlock, Anywhere},
		{ReqlockPlain, "github.com/reqlock/reqlock", "the same on a client with the defaults of go-redis", openReqlockPlain, Anywhere},
		{ReqlockFenced, "github.com/reqlock/reqlock", "the same as reqlock, with WithFencing", openReqlockFenced, Anywhere},
		{Redislock, "github.com/bsm/redislock", "LinearBackoff(1 ms)", openRedislock, Anywhere},
		{Redsync, "github.com/go-redsync/redsync/v4", "retries after 1 to 5 ms at random, as often as it takes", openRedsync, Anywhere},
		{Rueidislock, "github.com/redis/rueidis", "KeyMajority 1, TryNextAfter 500 ms", openRueidislock, Anywhere},
		{RueidislockNoLoop, "github.com/redis/rueidis", "the same with NoLoopTracking", openRueidislockNoLoop, Anywhere},
		{Raw, "github.com/redis/go-redis/v9", "SET NX PX and EVALSHA compare-and-delete; asks again after 1 ms", openRaw, Anywhere},
		{ReqlockReplica, "github.com/reqlock/reqlock", "the same as reqlock, with WithReplicas(1, 200 ms) and WithCommandTimeout(800 ms)", openReqlockReplica, OnReplica},
		{RawReplica, "github.com/redis/go-redis/v9", "SET NX PX and WAIT 1 in one pipeline, apart from that as raw go-redis", openRawReplica, OnReplica},
		{ReqlockQuorum, "github.com/reqlock/reqlock", "NewQuorum with its defaults, on clients with ContextTimeoutEnabled", openReqlockQuorum, OnQuorum},
		{RedsyncQuorum, "github.com/go-redsync/redsync/v4", "a pool for each server, apart from that as redsync", openRedsyncQuorum, OnQuorum},
		{Channel, "", "a Go channel in one process: the ideal, without Redis", openChannel, Anywhere},
	}
}

// Open opens a lock of the kind that has this name.
func Open(name Name, c Config) (Locker, error) {
	for _, kind := range Kinds() {
		if kind.Name == name {
			return kind.Open(c)
		}
	}
	return nil, fmt.Errorf("no lock is named %q", name)
}
