// Package failover tests locks, waiters and idempotent requests while a master of Redis
// is replaced, on real Sentinel and Cluster deployments, through the public API and over
// real HTTP and gRPC connections.
//
// # The scenarios
//
// A scenario is one failure of one master, and what callers do meanwhile: they hold a
// lock, wait for one, hand locks over, lock several keys at once, and send plain and
// idempotent requests. Each of these is a part of the scenario. The parts start, the
// master fails, another server becomes the master, the old master comes back, and each
// part checks its results. The processes of a scenario are Lockers with clients of their
// own.
//
// # The checks
//
// Package history checks the holds. Two holds of a key overlap only if Redis has lost
// data, and then a holder is informed of its loss; fences rise in any case. An answer is
// the answer of a handler that ran for the request, or a replay of one, or an outcome
// that README.md documents. Each failure states which data it may lose.
//
// # The tiers
//
// The fast tier has one failure, on Sentinel, and one way to lose locks that replicas have
// not acknowledged. The full tier has all of them, and rolling restarts. Failovers of Redis
// Cluster are in the fast tier of pipeline and pubsub.
// REQLOCK_FAILOVERS=50 repeats the failovers of the test of acknowledged locks, and
// REQLOCK_SOAK=10m repeats the scenarios for that long.
//
// The package has only tests.
package failover
