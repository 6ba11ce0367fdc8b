// Package storetest has what the tests of the packages under internal/redis share: requests
// and tokens, the state of a lock in Redis, clients behind proxies, and hooks for go-redis.
package storetest
