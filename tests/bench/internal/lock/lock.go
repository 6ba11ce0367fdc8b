// Package lock gives reqlock and the locks that it is compared with one small interface. Each is
// used as its documentation shows, with its fastest settings for a nearby server: see Kind.Setting.
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

// Held is a held lock. If the lock's own type has this method, it is returned as it is, so that
// the interface costs no allocation.
type Held interface {
	// Release releases the lock, and returns when Redis has confirmed it.
	Release(ctx context.Context) error
}

// A Config says how a Locker connects to Redis.
type Config struct {
	Addrs    []string      // one server, the masters of a cluster, or the servers of a quorum
	Commands *wire.Counter // counts the commands of the Locker
	Permits  int           // how many locks of a key may be held at a time; 0 is one
	IsCrowd  bool          // so many callers or Lockers come together that commands may take long
}

// The names of the compared locks.
const (
	Reqlock           = "reqlock"
	ReqlockPlain      = "reqlock plain"
	Redislock         = "redislock"
	Redsync           = "redsync"
	Rueidislock       = "rueidislock"
	RueidislockNoLoop = "rueidislock noloop"
	Raw               = "raw go-redis"
	RawPipelined      = "raw pipelined"
	ReqlockReplica    = "reqlock acknowledged"
	RawReplica        = "raw SET+WAIT"
	ReqlockPermits    = "reqlock permits"
	RawPermits        = "raw sorted set"
	Asynq             = "asynq semaphore"
	ReqlockShared     = "reqlock shared"
	ReqlockReader     = "reqlock reader"
	RawShared         = "raw readers and writer"
	ReqlockQuorum     = "reqlock quorum"
	RedsyncQuorum     = "redsync quorum"
	Channel           = "channel"
)

// A Kind is one of the compared locks.
type Kind struct {
	Name    string
	Module  string // the module that has its version; "" for none
	Setting string // its settings, as text
	Keys    int    // how many keys each of its locks takes together; 0 is one
	Open    func(Config) (Locker, error)
}

// Kinds returns all kinds, reqlock first.
func Kinds() []Kind {
	const (
		ours    = "github.com/reqlock/reqlock"
		goRedis = "github.com/redis/go-redis/v9"
		redsync = "github.com/go-redsync/redsync/v4"
		rueidis = "github.com/redis/rueidis"
	)
	return []Kind{
		{Reqlock, ours, "its defaults, on a client with ContextTimeoutEnabled; where many callers or Lockers come together WithCommandTimeout(4 s)", 0, openReqlock},
		{ReqlockPlain, ours, "the same on a client with the defaults of go-redis", 0, openReqlockPlain},
		{Redislock, "github.com/bsm/redislock", "LinearBackoff(1 ms)", 0, openRedislock},
		{Redsync, redsync, "retries after 1 to 5 ms at random, as often as it takes", 0, openRedsync},
		{Rueidislock, rueidis, "KeyMajority 1, TryNextAfter 500 ms", 0, openRueidislock},
		{RueidislockNoLoop, rueidis, "the same with NoLoopTracking", 0, openRueidislockNoLoop},
		{Raw, goRedis, "SET NX PX and EVALSHA compare-and-delete; asks again after 1 ms", 0, openRaw},
		{RawPipelined, goRedis, "pipelines of SET NX PX and DEL of 32 keys, on one connection: a limit, since nothing is held", pipelinedKeys, openRawPipelined},
		{ReqlockReplica, ours, "the same as reqlock, with WithReplicas(1, 200 ms) and WithCommandTimeout(800 ms)", 0, openReqlockReplica},
		{RawReplica, goRedis, "SET NX PX and WAIT 1 in one pipeline, apart from that as raw go-redis", 0, openRawReplica},
		{ReqlockPermits, ours, "the same as reqlock, with WithPermits and WithCommandTimeout(2 s)", 0, openReqlockPermits},
		{RawPermits, goRedis, "a sorted set of holders, counted and extended by one script; asks again after 1 ms", 0, openRawPermits},
		{Asynq, "github.com/hibiken/asynq/x", "each permit belongs to one of 128 tasks of asynq that run for this; asks again after 1 ms", 0, openAsynq},
		{ReqlockShared, ours, "the same as reqlock, with WithShared for readers and WithCommandTimeout(2 s)", 0, openReqlockShared},
		{ReqlockReader, ours, "the same, where all callers are readers", 0, openReqlockReader},
		{RawShared, goRedis, "a key of the writer and a sorted set of readers, checked by one script; asks again after 1 ms", 0, openRawShared},
		{ReqlockQuorum, ours, "NewQuorum with its defaults, on clients with ContextTimeoutEnabled", 0, openReqlockQuorum},
		{RedsyncQuorum, redsync, "a pool for each server, apart from that as redsync", 0, openRedsyncQuorum},
		{Channel, "", "a Go channel in one process, with room for each permit: the ideal, without Redis", 0, openChannel},
	}
}

// Find returns the kind with that name.
func Find(name string) (Kind, error) {
	for _, kind := range Kinds() {
		if kind.Name == name {
			kind.Keys = max(1, kind.Keys)
			return kind, nil
		}
	}
	return Kind{}, fmt.Errorf("no lock is named %q", name)
}
