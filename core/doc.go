// Package core takes distributed locks in Redis and runs requests under them.
//
// A Locker is made of a go-redis client:
//
//	locks := core.Must(core.New(redis.NewClient(&redis.Options{Addr: addr})))
//
//	err := locks.Do(ctx, "account:42", func(ctx context.Context) error {
//		return transfer(ctx)
//	})
//
// For the requests of a server there are adapters, which read the key from the
// request and answer those that do not get their lock: nethttplock, and its
// siblings for other frameworks. They stand on Enter and OutcomeOf, and so can
// an adapter of your own.
//
// # What is promised
//
// It is an advisory lease lock. It is exclusive while Redis keeps the key and
// the holder acts within the lease's validity. The holder is told before that
// ends, whatever the network does: the context of its lease is cancelled with
// the cause ErrLost.
//
// It is not more than that. Redis replicates asynchronously, so a failover can
// lose a key and let a second holder in. A process that is paused beyond its
// lease and then acts without a look at its context acts unprotected.
//
// # Wire
//
// A lock is one string key, set with SET key token NX PX ttl and deleted by a
// script that compares the token first. Any client that follows this classic
// recipe excludes reqlock and is excluded by it, if it uses the same key:
// WithPrefix sets what stands before yours. Two kinds of key are written as
// "h:" and a digest instead: one with a "}" that closes no cluster hash tag,
// and one that looks like such a digest.
//
// A command whose reply is lost is sent once more, with the same token, so
// that an owner is never told that it is not. A SET that the network delivers
// after its sender gave up holds the key for nobody; it is released as soon as
// its late reply is seen, and falls by its TTL if no reply ever comes.
//
// # Waiting
//
// In one process the waiters of a key are served in the order in which they
// came, and a released lease passes from one to the next without Redis, within
// a budget. Between processes a waiter asks again at growing intervals, of at
// most 250 ms, and no order is promised.
package core
