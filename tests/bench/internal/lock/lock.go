package lock

import (
	"context"
	"fmt"
	"time"

	"github.com/reqlock/reqlock/tests/bench/internal/wire"
)

// TTL is the TTL of all locks. It is so long that no lock expires during a run.
const TTL = 10 * time.Second

// A Locker is a lock as one process uses it. It is safe for concurrent use.
type Locker interface {
	// Lock takes the lock of a key. It waits until ctx ends.
	Lock(ctx context.Context, key string) (Held, error)
	// Close closes the connections of the Locker. No lock may be held.
	Close() error
}

// A Sharer is a Locker that also grants shared locks: any number at a time, but none beside a
// lock of Lock.
type Sharer interface {
	Locker
	// Share takes a shared lock of a key. It waits until ctx ends.
	Share(ctx context.Context, key string) (Held, error)
}

// Held is a held lock. If the lock's own type has this method, it is returned as it is, so
// that the interface costs no allocation.
type Held interface {
	// Release releases the lock, and returns when Redis has confirmed it.
	Release(ctx context.Context) error
}

// A Config says how a Locker connects to Redis.
type Config struct {
	Addrs    []string      // one server, the masters of a cluster, or the servers of a quorum
	Commands *wire.Counter // counts the commands of the Locker
	Permits  int           // how many locks of a key may be held at a time; 0 is one
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
	ReqlockPermits    Name = "reqlock permits"
	RawPermits        Name = "raw sorted set"
	Asynq             Name = "asynq semaphore"
	ReqlockShared     Name = "reqlock shared"
	RawShared         Name = "raw readers and writer"
	ReqlockQuorum     Name = "reqlock quorum"
	RedsyncQuorum     Name = "redsync quorum"
	Channel           Name = "channel"
)

// A Place is the kind of Redis that a lock is made for.
type Place int

// The places.
const (
	Anywhere  Place = iota // one server, or a cluster
	OnServer               // one server alone
	OnReplica              // a master with replicas
	OnQuorum               // independent servers
)

// A Kind is one of the compared locks.
type Kind struct {
	Name    Name
	Module  string // the module that has its version; "" for none
	Setting string // its settings, as text
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
		{ReqlockPermits, "github.com/reqlock/reqlock", "the same as reqlock, with WithPermits and WithCommandTimeout(2 s)", openReqlockPermits, Anywhere},
		{RawPermits, "github.com/redis/go-redis/v9", "a sorted set of holders, counted and extended by one script; asks again after 1 ms", openRawPermits, Anywhere},
		{Asynq, "github.com/hibiken/asynq/x", "each permit belongs to one of 128 tasks of asynq that run for this; asks again after 1 ms", openAsynq, OnServer},
		{ReqlockShared, "github.com/reqlock/reqlock", "the same as reqlock, with WithShared for readers and WithCommandTimeout(2 s)", openReqlockShared, Anywhere},
		{RawShared, "github.com/redis/go-redis/v9", "a key of the writer and a sorted set of readers, checked by one script; asks again after 1 ms", openRawShared, Anywhere},
		{ReqlockQuorum, "github.com/reqlock/reqlock", "NewQuorum with its defaults, on clients with ContextTimeoutEnabled", openReqlockQuorum, OnQuorum},
		{RedsyncQuorum, "github.com/go-redsync/redsync/v4", "a pool for each server, apart from that as redsync", openRedsyncQuorum, OnQuorum},
		{Channel, "", "a Go channel in one process, with room for each permit: the ideal, without Redis", openChannel, Anywhere},
	}
}

// Open opens a lock of the kind with that name.
func Open(name Name, c Config) (Locker, error) {
	for _, kind := range Kinds() {
		if kind.Name == name {
			return kind.Open(c)
		}
	}
	return nil, fmt.Errorf("no lock is named %q", name)
}
