// Package core takes distributed locks in Redis and runs code under them.
//
// New makes a Locker from a go-redis client:
//
//	rdb := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
//	locks := core.Must(core.New(rdb))
//
//	err := locks.Do(ctx, "account:42", func(ctx context.Context) error {
//		return transfer(ctx)
//	})
//
// With ContextTimeoutEnabled, a lone caller sends its own commands, which makes a lock up to a
// third faster. If you trace the client with redisotel, use redisotel.WithDBStatement(false):
// by default it writes raw keys and tokens into spans.
//
// An adapter locks the requests of a server: it reads the key from the request, and it
// answers a request that does not get its lock. There is an adapter for net/http,
// nethttplock, and one for each of several frameworks. An adapter of your own can use Enter
// and OutcomeOf, as they do.
//
// # Guarantees
//
// A lock is advisory and has a lease. Only one holder has the lock, as long as Redis keeps
// the key and the holder acts only while its lease is valid. The context of the lease is
// cancelled with the cause ErrLost before the validity ends, even if the network fails.
//
// There are two limits. Redis replicates asynchronously, so a failover can lose a key and
// let a second holder in. A process that is paused for longer than its lease, and then acts
// without checking its context, acts without the lock.
//
// # Keys and messages in Redis
//
// A lock is one string key. It is set by SET key token NX PX ttl, and deleted by a script
// that compares the token first. This is the classic recipe. reqlock and any other client of
// that recipe exclude each other if they use the same key. WithPrefix sets the prefix of
// reqlock's keys. Some keys are written as "h:" and a digest instead:
//
//   - keys with a "}" that closes no cluster hash tag,
//   - keys that, with the prefix, are nothing but a hash tag,
//   - keys that, with the prefix, have a hash tag and end in ":q", ":f" or ":r", as reqlock's
//     own keys beside a lock do,
//   - keys that look like such a digest.
//
// The queue of a lock is a list, and its fencing number is a string. Both keys are in the
// cluster slot of the lock. Each process with waiters subscribes to one channel, which is
// the prefix and a random id. In a cluster it subscribes to a sharded channel for each key,
// in the slot of the key.
//
// If the reply to a command is lost, reqlock sends the command once more with the same
// token. So a holder is not refused its own lock. If the network delivers a SET after its
// client gave up, the key is locked without a holder. It is released when the late reply
// arrives. If no reply arrives, the key stays locked until its TTL ends.
//
// # Rights
//
// The Redis user of the client (Username and Password in its options) needs these rights
// and no others. With another prefix, the keys and channels differ:
//
//	~reqlock:* ~{reqlock:* &reqlock:* +del +eval +evalsha +exists +get +hdel +hget +hmget +hset +lindex +llen +lpop +lpos +lrem +pexpire +ping +pttl +publish +rpush +set +subscribe +time
//
// A cluster also needs:
//
//	&{reqlock:* +asking +cluster|slots +spublish +ssubscribe +sunsubscribe
//
// Some options need one more right. WithReplicas takes +wait. NewQuorum takes +info. A client
// with a DB other than 0 takes +select. Check names a missing right. With +info, Check also
// warns of a server that may evict locks.
//
// # Idempotent requests
//
// An idempotent request takes effect once for its key. Begin takes the lock of the key and
// reads the record of the key in one round trip. The first request runs under the lock.
// Commit then stores its answer and frees the lock in one step. Later requests with the key
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
//	case err != nil: // such as a timeout: the outcome is unknown, as it is after a panic
//		return err
//	}
//	_ = attempt.Commit(ctx, answer) // before the answer is sent; the observer receives a failure
//	return send(answer)
//
// The record is a hash beside the lock. The key of the lock is "i:" and your key. If a
// process dies between Begin and Commit, it is unknown whether the request took effect: see
// WithInterrupted, Outcome and Resolve. If a request must never take effect twice, the system in
// which it takes effect must check the key too.
//
// # Waiting
//
// Requests that wait for a lock form a queue. Within one process they get the lock in the
// order of their arrival. Processes take turns, in the order in which they joined the queue.
//
// A released lease goes directly to the next waiter. Within a process this needs no command.
// While another process waits, a process keeps the lease for at most 64 hand-offs or 50 ms.
// Then one command passes the lock to the next process and notifies it by pub/sub. A waiter
// checks Redis about once a second, and otherwise sends nothing. So a lost message, a lost
// connection, or a dead process ahead in the queue delays a waiter and does not stop it.
//
// A new request does not overtake waiters. Exception: the key is gone although no holder
// released it, because it expired or was deleted. Then the first request gets the lock until
// the first waiter checks Redis.
//
// A foreign client of the classic recipe does not join the queue. While such a client holds
// the lock, waiters check for its end every 250 ms. If the subscription of a process is cut
// when its turn comes, or the process confirms its turn too late, the process loses its turn
// and goes to the end of the queue.
//
// # Outages
//
// A command that fails is sent again once. A caller that may not wait gets ErrUnavailable
// after the command timeout at the latest. A caller that waits tries again until its wait
// ends, and so rides through a failover.
//
// If Redis has not replied for 3 s (WithFailFast), new callers for the keys of that server
// are refused at once with ErrUnavailable, so that they do not fill the program while they
// wait. Callers that wait already keep their place. The Locker sends one small command at a
// time, and the first reply ends the state.
//
// # Limits
//
// WithMaxWaiters and WithMaxTotalWaiters limit how many callers wait. A caller above the
// limit is refused at once. WithFencing gives each lease a number that is greater than the
// number of the lease before.
//
// # Deadlocks
//
// Do, DoAll, LockAll and Lock wait without a limit unless WithWait is set. In these cases a
// caller waits for a lock that is never released:
//
//   - One caller takes a and then b, and another takes b and then a. Take all keys of an
//     operation at once, with DoAll, LockAll, or Also in a middleware: these lock the keys in
//     one order. If that is not possible, always nest the locks in the same order.
//   - A caller takes a key again through a second Locker with the same Redis and prefix. Only
//     a Locker and its views share a nested lock, so a process should have one Locker. To
//     use other settings, make a view by With.
//   - A caller takes a key again with a context that does not carry its lease. Pass the
//     context of the lease. A *gin.Context does not carry it unless its engine has
//     ContextWithFallback; Lock and Do then return ErrHiddenLease.
//
// WithWait turns such a wait into ErrWaitTimeout.
package core
