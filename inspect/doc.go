// Package inspect shows what is locked in Redis, and ends leases, for an operator:
//
//	i, err := inspect.New(rdb)
//	page, err := i.Locks(ctx, inspect.Filter{MinWaiting: 1}) // the locks for which processes wait
//	lock, err := i.Lock(ctx, "account:42")                   // who holds it, and who waits
//	err = i.Revoke(ctx, lock)                                // the lease ends, and nobody overlaps with its holder
//
// It reads what the processes of a service have written, and needs no change of the service. So it
// shows processes, not requests: the requests of one process that wait for a key are one waiter in
// Redis, and a lease passes between them without a command. A process with core.WithInstance writes
// about its requests each 10 s: see Process.
//
// # Cost
//
// There is no registry of locks. Locks, Records and Processes look through all keys of the server, or
// of each master of a cluster, in steps of about a millisecond of its time, with pauses. They end at
// the limit of WithLimit. Lock, Record and Process read one key, and Lock also the records of the
// processes of its holders and waiters. Exception: for the digest of a log line, or for the first digits of an id, they look
// through the keys, too.
//
// # Rights
//
// SCAN ignores the key patterns of a user: a user with +scan sees the names of all keys of the
// server. The page of the package lists the rights.
package inspect
