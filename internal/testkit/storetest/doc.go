// Package storetest is shared by the tests of the packages under internal/redis: requests
// and tokens, the state of a lock in Redis, clients behind proxies, and hooks of go-redis.
package storetest
