// Package keyspace names the Redis keys and the channels of a lock.
//
// The lock K is one string key: prefix and key, verbatim where possible. Beside it are
// its waiting queue {K}:q, a list of tokens; its fence {K}:f, the last fencing number that
// was reserved; its record {K}:r, a string, if K is the lock of an idempotent request; and its
// shared leases {K}:s, a sorted set, while K has any. The hash tag puts all of them into the
// cluster slot of K. The record of a process is {<prefix>process:<process id>}:p, a hash.
//
// A process has one channel, prefix and process id. In a cluster it has one sharded
// channel for each key that it waits for, {K}:<process id>, in the slot of K. A message,
// a hint, is "<token> <lock name>".
package keyspace
