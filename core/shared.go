package core

import (
	"fmt"
	"strconv"

	"github.com/reqlock/reqlock/internal/bridge"
	"github.com/reqlock/reqlock/internal/engine"
)

// Permits lets at most n requests hold the key at the same time, in all processes:
//
//	nethttplock.Middleware(locks, nethttplock.PathValue("tenant").Named("exports").Permits(5))
//
// Each request holds one of n permits. Without WithWait, a request that finds no free permit
// gets ErrBusy. Processes that give different numbers, as during a deploy, each obey their own
// number. See WithPermits, which does the same for Lock and Do, for what permits do with other
// options. With WithFencing, a middleware panics for an n above 1, and Enter refuses each request.
//
// The number belongs to the key and is not part of it. Of several calls of Permits, Shared and
// SharedWhen the last one counts. A key with a number does not use WithPermits and WithShared of its
// Locker. An n below 1 or above 999,999,999 panics.
func (k Key[R]) Permits(n int) Key[R] {
	must(isPermits(n), fmt.Sprintf("Permits: %d is not from 1 to %d", n, engine.MaxLimit))
	return k.limited("Permits", strconv.Itoa(n), engine.Limit(n), false, func(R) engine.Limit { return engine.Limit(n) })
}

// Shared lets any number of requests hold the key at the same time, except beside a request
// that locks the key without Shared: the lock of readers and writers. Requests with Shared are
// the readers. See WithShared, which does the same for Lock and Do.
func (k Key[R]) Shared() Key[R] {
	return k.limited("Shared", "", engine.Unlimited, false, func(R) engine.Limit { return engine.Unlimited })
}

// SharedWhen is Shared for the requests for which the condition is true. All other requests lock
// the key alone:
//
//	nethttplock.Middleware(locks, nethttplock.PathValue("id").Named("report").SharedWhen(nethttplock.IsRead), core.WithWait(2*time.Second))
//
// A request that wants the key alone waits for those that share it, and later ones that share it
// wait for that request. If it might not wait, it could be refused for ever, because there is
// always one that shares the key. So a middleware panics without WithWait above 0, and Enter
// refuses the request. A nil condition panics.
func (k Key[R]) SharedWhen(condition func(R) bool) Key[R] {
	must(condition != nil, "SharedWhen needs a condition")
	return k.limited("SharedWhen", functionOf(condition), engine.Unlimited, true, func(r R) engine.Limit {
		if condition(r) {
			return engine.Unlimited
		}
		return engine.Exclusive
	})
}

// limited sets the limit of the key: for each request the shared one, or else Exclusive.
func (k Key[R]) limited(method, arguments string, shared engine.Limit, needsWait bool, limit func(R) engine.Limit) Key[R] {
	return k.each(method, func(node bridge.Node[R]) bridge.Node[R] {
		limited := Key[R]{node}.with(method, arguments, func(r R, key lockKey) lockKey {
			key.Limit, key.HasLimit = int(limit(r)), true
			return key
		}).node
		// The About is new: with has copied it, so that the key from which this one is made stays as it is.
		limited.About.NeedsWait, limited.About.Limits = needsWait, []int{int(shared)}
		return limited
	})
}

// isPermits reports whether Permits and WithPermits accept a number.
func isPermits(n int) bool { return 1 <= n && n <= int(engine.MaxLimit) }
