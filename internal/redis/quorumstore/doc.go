// Package quorumstore keeps locks on several independent Redis servers. A majority of the
// servers must grant a lease. The package implements store.Store with one redisstore.Store
// for each server.
//
// The algorithm is Redlock, by Salvatore Sanfilippo
// (https://redis.io/docs/latest/develop/use/patterns/distributed-locks/):
//
//   - A request for a lock is sent to all servers at once, with a unique token. It is called
//     a ballot. A majority of votes grants the lock. The lease is valid for one TTL from the
//     time when the first of these votes was requested.
//   - A ballot without a majority is withdrawn from all servers, also from servers that have
//     not replied. The client retries with another ballot after a random pause. The pause
//     makes it unlikely that the same clients split the votes again.
//   - A renewal succeeds if a majority of the servers still has the lease. A server without
//     the lease is asked for its vote again. So a lease survives if the servers are restarted
//     one after the other.
//   - A server that has just started does not vote before all leases that it may have voted
//     for have ended ("delayed restarts"): see membership.
//
// Each operation ends as soon as the replies decide it. So a slow or dead minority delays no
// lock that the other servers grant or refuse. If the votes are split, the operation waits for
// the remaining servers for a limited time: see boundStragglers.
//
// The queues on the servers do not decide the order of grants. A server uses its
// queue to select the waiter that it notifies when a vote is free. A notification is only a
// hint.
package quorumstore
