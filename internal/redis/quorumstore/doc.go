// Package quorumstore keeps locks on several Redis servers that know nothing of
// each other: a lease is what a majority of them granted. It implements
// store.Store, over one redisstore.Store for each server.
//
// The algorithm is Redlock, by Salvatore Sanfilippo
// (https://redis.io/docs/latest/develop/use/patterns/distributed-locks/):
//
//   - a question goes to all servers at once, under a token that no other question
//     has: a ballot. A majority of votes grants it, for as long as is left of the
//     TTL since the first of those votes was asked for;
//   - a ballot without a majority is withdrawn from all servers, also from those
//     whose answer did not come. Who lost it asks again under another ballot, after
//     a pause that is random, so that those who have split the vote do not do so
//     again;
//   - a renewal counts where a majority still had the lease. Servers without a vote
//     for anybody are asked for theirs with it, so that a lease outlives servers
//     that are restarted one after the other;
//   - a server that has just started gives no votes, until all leases for which it
//     may have voted before are over ("delayed restarts"): see muster.
//
// Each answer is told as soon as the servers that have answered decide it, so a
// minority that is slow or dead holds up no lock that the others grant or refuse. Where
// they are divided, the rest is waited for: see hurry.
//
// The servers' waiting lines give no order here. They say whom to wake when a vote
// is free, and what is told then is a hint as always.
package quorumstore
