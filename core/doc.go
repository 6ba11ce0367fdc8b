// Package core takes distributed locks in Redis and runs requests under them.
//
// A Locker is made of a go-redis client:
//
//	rdb := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
//	locks := core.Must(core.New(rdb))
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
// WithPrefix sets what stands before yours. A few keys are written as "h:" and a
// digest instead: those with a "}" that closes no cluster hash tag, those that,
// with the prefix, are nothing but a hash tag, or have one and end as the
// companions of a lock do (":q", ":f" or ":r"), and those that look like such a
// digest.
//
// The waiting line of a lock is a list beside it, and its fencing number a
// string; both lie in the lock's cluster slot. Each process that waits listens
// on one channel, the prefix and a random id; in a cluster on a sharded channel for
// each key, in its slot.
//
// A command whose reply is lost is sent once more, with the same token, so
// that an owner is never told that it is not. A SET that the network delivers
// after its sender gave up holds the key for nobody; it is released as soon as
// its late reply is seen, and falls by its TTL if no reply ever comes.
//
// # Rights
//
// The user of the client, Username and Password in its options, needs these rights
// and no others; with another prefix, its keys and channels:
//
//	~reqlock:* ~{reqlock:* &reqlock:* +del +eval +evalsha +exists +get +hdel +hget +hmget +hset +lindex +llen +lpop +lpos +lrem +pexpire +ping +pttl +publish +rpush +set +subscribe +time
//
// and in a cluster these besides:
//
//	&{reqlock:* +asking +cluster|slots +spublish +ssubscribe +sunsubscribe
//
// WithReplicas takes +wait. NewQuorum takes +info. A client with a DB other than 0
// needs +select. Check says which right is missing, and with +info also warns of a
// server that may evict locks.
//
// # Idempotent requests
//
// Begin is the lock of a request that takes effect once for its key. It looks at
// the record of the key in the same round trip: the first request runs, under a
// lock, and Commit stores its answer and frees the lock in one step. Later ones
// get the answer:
//
//	attempt, err := locks.Begin(ctx, "order:42", fingerprint)
//	if err != nil {
//		return err // ErrBusy, ErrMismatch, ErrInterrupted, ...
//	}
//	if answer, done := attempt.Replay(); done {
//		return send(answer)
//	}
//	defer func() { _ = attempt.Interrupt(ctx) }() // does nothing once the attempt has ended
//	answer, err := charge(attempt.Lease().Context())
//	switch {
//	case errors.Is(err, errDeclined): // nothing was charged, so the next request may run
//		return errors.Join(err, attempt.Abort(ctx))
//	case err != nil: // a timeout, say: nobody knows, and neither after a panic
//		return err
//	}
//	_ = attempt.Commit(ctx, answer) // before it is sent; the observer hears of a failure
//	return send(answer)
//
// The record is a hash beside the lock, under the key "i:" and yours. A process
// that dies between Begin and Commit leaves a request of which nobody knows
// whether it took effect: see WithInterrupted and Resolve. What must not happen
// twice under any circumstances needs the key in the system where it happens.
//
// # Waiting
//
// Waiters stand in line. Within a process they are served in the order in
// which they came; processes take turns, in the order in which they joined. A
// lease that is released goes straight to the next one: within a process
// without Redis, for up to 64 turns or 50 ms while another process waits; to
// another process by one command, which also tells it through pub/sub. A waiter
// sends nothing while it waits, but for a look about once a second: whatever
// should have told it, a message, a connection, the process ahead of it, may be
// lost without stranding it.
//
// A newcomer does not pass those who wait, with one exception: while the key is
// gone although nobody of ours released it (it expired, or was deleted), and
// until the first waiter looks, whoever asks first gets it. A foreign client of
// the classic recipe knows of no line; waiters look for the end of its lock
// every 250 ms. A process whose subscription is cut when its turn comes, or
// that confirms it too late, loses its turn and stands behind the others.
//
// WithMaxWaiters and WithMaxTotalWaiters bound how many callers wait; who comes
// after them is refused at once. WithFencing gives each lease a number that
// rises from holder to holder.
package core
