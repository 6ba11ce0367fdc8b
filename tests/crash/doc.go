// Package crash tests the Idempotent middlewares on a real redis-server, with service
// processes that are killed, stopped or cut off from Redis.
//
// # The testbed
//
// The test binary starts itself again as processes of a payment service, each behind its
// own proxy to Redis. The test itself runs the clients, the operator that resolves unknown
// outcomes, and the ledger, which counts the charges of the service. By MONITOR it also
// receives each write to a record. A test chooses the exact point at which a process is
// killed: a command to Redis that the proxy holds, a call of the ledger, or a part of an
// answer that a client has read. When the process ends, nothing else that it has sent is
// in flight.
//
// # The checks
//
// An observation of a key holds the answers of its clients, its charges and the writes to
// its record. It has a violation if two answers are committed, if a replay differs from
// the committed answer, if a client gets an answer that was not committed, or if there are
// more charges than the policy allows. Tests with wrong observations test these checks.
//
// This package has no code but its tests.
package crash
