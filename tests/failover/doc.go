// Package failover proves what becomes of locks, waiters and idempotent
// requests when a master of Redis is replaced, on real Sentinel and Cluster
// deployments, through the public API and over real HTTP and gRPC connections.
//
// # The scenes
//
// A scene is one failure of one master, and all that callers do meanwhile: they
// hold a lock, they wait for one, they send requests that take effect once, and
// they send request after request. Each of them is a part of the scene. The
// parts come into place, the master fails, another one takes over, the old one
// comes back, and each part says what it was told. The processes of a scene are
// Lockers with clients of their own.
//
// # The checks
//
// Times are those of one monotonic clock. A hold is believed in from its grant
// to the earliest of its release, the end of its context and the end of its
// validity. Two holds of a key overlap only where Redis has lost data, and then
// the first of them is told; fencing numbers rise in any case. An answer is that
// of a handler which ran for its request, or a replay of one, or a row of the
// table of outcomes. What each failure may lose is written down beside it.
//
// There is nothing in this package but its tests.
package failover
