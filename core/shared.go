package core

import (
	"fmt"

	"github.com/reqlock/reqlock/internal/engine"
)

// Permits lets at most n requests hold the key at the same time, in all processes:
//
//	nethttplock.Middleware(locks, core.Permits(5, core.Named("exports", nethttplock.PathValue("tenant"))))
//
// Each request holds one of n permits. Without WithWait, a request that finds no free permit
// gets ErrBusy. Processes that give different numbers, as during a deploy, each obey their own
// number. See WithPermits, which does the same for Lock and Do, for what permits do with other
// options.
//
// The number belongs to the key and is not part of it. The functions of this package that
// return the key of one function keep it, in any order: Named around Permits and Permits around
// Named mean the same. Of several Permits, Shared and SharedWhen around one key, the outermost
// one counts. Join refuses parts with them. A key with a number does not use WithPermits and
// WithShared of its Locker.
//
// An n below 1 or above 999,999,999 panics.
func Permits[R any, K string | RequestKey](n int, key func(R) (K, error)) KeyFunc[R] {
	must(isPermits(n), fmt.Sprintf("Permits: %d is not from 1 to %d", n, engine.MaxLimit))
	must(key != nil, "Permits needs a key function")
	return withLimit(engine.Limit(n), key)
}

// Shared lets any number of requests hold the key at the same time, except beside a request
// that locks the key without Shared: the lock of readers and writers. Requests with Shared are
// the readers. See WithShared, which does the same for Lock and Do, and Permits, which combines
// with other key functions in the same way.
func Shared[R any, K string | RequestKey](key func(R) (K, error)) KeyFunc[R] {
	must(key != nil, "Shared needs a key function")
	return withLimit(engine.Unlimited, key)
}

// SharedWhen is Shared for the requests for which the condition is true. All other requests
// lock the key alone. Set WithWait: a request that may not wait, and wants the key alone, is
// refused as long as there are requests that share it.
func SharedWhen[R any, K string | RequestKey](condition func(R) bool, key func(R) (K, error)) KeyFunc[R] {
	must(condition != nil, "SharedWhen needs a condition")
	must(key != nil, "SharedWhen needs a key function")
	shared, alone := withLimit(engine.Unlimited, key), withLimit(engine.Exclusive, key)
	return func(r R) (RequestKey, error) {
		if condition(r) {
			return shared(r)
		}
		return alone(r)
	}
}

// withLimit returns a key function that sets the limit of the key.
func withLimit[R any, K string | RequestKey](limit engine.Limit, key func(R) (K, error)) KeyFunc[R] {
	plain := Func(key)
	return func(r R) (RequestKey, error) {
		k, err := callKey(plain, r)
		if err != nil {
			return RequestKey{}, err
		}
		k.limit, k.hasLimit = limit, true
		return k, nil
	}
}

// isPermits reports whether Permits and WithPermits accept a number.
func isPermits(n int) bool { return 1 <= n && n <= int(engine.MaxLimit) }
