// Package redisstore runs the transitions of a lock on Redis: it encodes a request as a
// command, sends the command through package pipeline, and decodes the reply. It implements
// store.Store.
//
// # The lock in Redis
//
// A lock is one string key with the token of its holder as its value. SET key token NX PX
// ttl takes the lock. A script that deletes the key only if it has that token frees it. A
// client in any language that follows this recipe and the clients of this package exclude
// each other. Package keyspace names the other keys, package script has the scripts, and
// package pubsub receives the hints.
//
// # Shared leases
//
// While shared leases are out, the value of the lock is a marker (see marker.lua), so an
// exclusive take is refused as by any holder. Shared leases have scripts of their own. An
// exclusive ask or release that meets the marker changes nothing, and this package sends the
// script for both kinds instead. So a key without shared leases costs nothing more. A
// marker is never passed off as a holder: see hideMarker.
//
// # The record
//
// If K is the lock of an idempotent request, the string {K}:r is its record: the state of the
// attempts to run the request (see record.lua). begin.lua is enqueue.lua and a check of the
// record in one step. finish.lua ends an attempt and releases K in one step. An attempt can
// still be committed after its lease has expired, unless another attempt has begun since. An
// abort is recorded for a minute, so that a delayed copy of the begin of the same attempt
// does not begin it again.
//
// # The brief form
//
// The first send of a take or a release is brief: SET NX without GET, or a release with only
// the token if the caller knows no waiter. So is the first ask for a shared lease, and the
// first vote of a ballot is a take. The long form follows if the reply to the brief one is not
// enough. A server with DELIFEQ, such as Valkey 9, runs no script for a brief release of a lock:
// see native.go. On other servers, the brief releases that leave together are one call of
// freemany.lua, which takes the server half of the time: see command.Joint.
//
// # Replicas
//
// If replicas have to acknowledge grants, each script writes with each grant, even if the
// lock was granted before, because WAIT counts only what its own connection has written. For
// the same reason a take runs take.lua instead of SET NX. A hand-off is acknowledged when its
// receiver confirms it. Refusals need no acknowledgement.
//
// If too few replicas acknowledge a grant, the call fails. The grant may be in Redis, and a
// failover may lose it. This package does not send it again: the caller asks again with the
// same token, or releases the lock. What was committed stays.
//
// # Delayed SET commands
//
// If the network delivers a SET after its client gave up and released the lock, the key is
// locked without a holder. If the reply still arrives, the key is released again. Otherwise it
// is locked until its TTL ends.
package redisstore
