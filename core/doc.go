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
// Pass the inner ctx to all that the function calls: it carries the lease, and it is cancelled
// with the cause ErrLost if the lease is lost.
//
// To lock the requests of a server, use an adapter: nethttplock, ginlock, echolock,
// echov5lock or grpclock. It reads the key from the request, and it answers a request that does not get its
// lock. Other code with requests, such as the consumer of a queue, calls Enter and RefusalOf;
// package adapter is for a framework. The [documentation] has a tutorial for each framework,
// and a page for each task.
//
// # Guarantees
//
// A lock is advisory and has a lease. Only one holder has the lock, as long as Redis keeps
// the key and the holder acts only while its lease is valid. Redis replicates asynchronously,
// so a failover can lose a key and let a second holder in. A process that is paused for longer
// than its lease, and then acts without checking its context, acts without the lock. See
// [guarantees] and [fencing].
//
// A lock is one string key, set by SET key token NX PX ttl and deleted by a script that
// compares the token first. Any other client of this classic recipe and reqlock exclude each
// other if they use the same key. See [internals].
//
// # Waiting
//
// Lock, LockAll, Do and DoAll wait until their context ends, unless WithWait limits the wait.
// Waiters form a queue and do not poll: see [waiting]. A caller that may not wait gets ErrBusy.
// If Redis does not reply, it gets ErrUnavailable after WithCommandTimeout at the latest.
//
// # Idempotent requests
//
// An idempotent request takes effect once for its key: the first request runs, and later
// requests with the key get its answer. The adapters have a middleware for it. Begin does the
// same without a framework: see [Begin by hand]. If a process dies between Begin and Commit, it
// is unknown whether the request took effect: see ReadRecord, Resolve and [unknown outcomes].
//
// # Rights
//
// The Redis user of the client (Username and Password in its options) needs these rights
// and no others. With another prefix, the keys and channels differ:
//
//	~reqlock:* ~{reqlock:* &reqlock:* +del +eval +evalsha +exists +get +lindex +llen +lpop +lpos +lrange +lrem +pexpire +pexpireat +ping +pttl +publish +rpush +set +subscribe +time +zadd +zcard +zcount +zrange +zrem +zremrangebyscore +zscore
//
// A cluster also needs:
//
//	&{reqlock:* +asking +cluster|slots +spublish +ssubscribe +sunsubscribe
//
// Some options need more rights. WithReplicas takes +wait. NewQuorum takes +info. WithInstance takes
// +hset. WithUnknownSearch takes +scan and +getrange, and +object|idletime for Event.Age. A client
// with a DB other than 0 takes +select. Check names a missing right. There is more to set up: see
// [production checklist].
//
// # Deadlocks
//
// Without WithWait and without a deadline, a call of Lock, LockAll, Do or DoAll waits for ever
// in these cases:
//
//   - One caller takes a and then b, and another takes b and then a. Take all keys of an
//     operation at once, with DoAll, LockAll, or All in a middleware: these lock the keys in
//     one order. If that is not possible, always nest the locks in the same order.
//   - A caller takes a key again through a second Locker with the same Redis and prefix. Only
//     a Locker and its views share a nested lock, so a process should have one Locker. To
//     use other settings, make a view by With.
//   - A caller takes a key again with a context that does not carry its lease. Pass the
//     context of the lease. A fiber.Ctx does not carry it, nor does a *gin.Context unless its
//     engine has ContextWithFallback; Lock and Do then return ErrHiddenLease.
//
// WithWait turns such a wait into ErrWaitTimeout.
//
// [documentation]: https://github.com/reqlock/reqlock/blob/main/docs/README.md
// [guarantees]: https://github.com/reqlock/reqlock/blob/main/docs/guarantees.md
// [fencing]: https://github.com/reqlock/reqlock/blob/main/docs/fencing.md
// [internals]: https://github.com/reqlock/reqlock/blob/main/internal/README.md
// [waiting]: https://github.com/reqlock/reqlock/blob/main/docs/waiting.md
// [Begin by hand]: https://github.com/reqlock/reqlock/blob/main/docs/cookbook.md#a-message-that-runs-once
// [unknown outcomes]: https://github.com/reqlock/reqlock/blob/main/docs/unknown-outcomes.md
// [production checklist]: https://github.com/reqlock/reqlock/blob/main/docs/production.md
package core
