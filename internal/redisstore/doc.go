// Package redisstore is the Redis side of the lock: the names of its keys, its
// scripts, how a command is sent, and what an error of Redis means.
//
// # The wire
//
// A lock is one string key whose value is the holder's token, taken with
// SET key token NX PX ttl and freed by a script that deletes the key only if
// it still carries the token. Every client in any language that follows this
// classic recipe excludes this package and is excluded by it.
//
// # How a command is sent
//
// go-redis repeats a command by itself when a reply is lost. For SET NX that
// turns an owner into a loser: the second SET finds the first one's key. So
// each command here forbids go-redis to repeat it, and is re-sent at most once
// by this package, with the same token, which every script recognises. A
// command that outlives its bound is left behind; should its reply come late
// and say that it took the key, the hint function is told.
//
// # What a delayed SET can still do
//
// A SET that a network holds back, and delivers after its sender gave up and
// released, takes the key for nobody. The sender hears of it only if the reply
// still arrives; then the key is released again. Otherwise it falls by its TTL.
package redisstore
