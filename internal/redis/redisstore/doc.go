// Package redisstore runs the transitions of a lock on Redis: it encodes a request as a
// command, sends it through package pipeline, and decodes the reply. It implements
// store.Store.
//
// # The wire
//
// A lock is one string key whose value is the holder's token, taken with
// SET key token NX PX ttl and freed by a script that deletes the key only if
// it still carries the token. Every client in any language that follows this
// classic recipe excludes this package and is excluded by it. Package keyspace names the
// other keys, package script holds the scripts, and package pubsub receives the hints.
//
// # The record
//
// If K is the lock of an idempotent request, the hash {K}:r says what became of
// the attempts at it: see record.lua. begin.lua is enqueue.lua and a look at the
// record in one step, finish.lua the end of an attempt and the release of K. An
// attempt that outlived its lease may still be committed, unless another one has
// begun since. An abort leaves a mark for a minute, so that a late copy of its
// begin does not begin it again.
//
// # The brief form
//
// The first form of a take and of a release is brief: SET NX without GET, and
// the token alone for a key for which nobody is known to wait. The long form
// follows where that does not do.
//
// # Replicas
//
// If replicas have to acknowledge what is granted, the scripts write with each grant, also
// if they find it made, because WAIT counts only what its own connection has written. For
// the same reason a take is take.lua instead of SET NX. A hand-off is acknowledged with the
// confirmation of the receiver. Refusals need no replicas.
//
// Too few acknowledgements are a fault of what was granted: it may be in Redis and may yet
// be lost. It is not sent again here. The caller asks again under the same token, or
// releases it; what is committed stays.
//
// # What a delayed SET can still do
//
// A SET that a network holds back, and delivers after its sender gave up and
// released, takes the key for nobody. The sender hears of it only if the reply
// still arrives; then the key is released again. Otherwise it falls by its TTL.
package redisstore
