package core

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/reqlock/reqlock/internal/bridge"
)

// Enter takes the locks of a request. It returns the context under which to run the request,
// and the function that releases them. The middlewares of the adapters do the same:
//
//	ctx, release, err := core.Enter(r.Context(), locks, r, key)
//	if err != nil {
//		answer(w, err) // by core.RefusalOf(err)
//		return
//	}
//	defer release()
//
// WithWait sets how long Enter waits, for all locks together; without WithWait it does not wait.
//
// release ends the returned context if a lock was taken. It waits for Redis about as long as one
// command takes, also for several keys and after ctx has ended. It is never nil. It may be called
// more than once, from any goroutine.
//
// A key that returns ErrSkip takes no lock. If no key takes a lock, or if Redis is unavailable and
// WithFailOpen is on, the request runs without a lock. Then all leases of LeasesFromContext are
// nil, one for each key of All.
//
// The error is an error of Lock, ErrBodyTooLarge, or the error of a key. With an error no key is
// locked. Enter panics for the zero Key.
func Enter[R any](ctx context.Context, l *Locker, r R, key Key[R]) (locked context.Context, release func(), err error) {
	must(key.node.About != nil, "Enter needs a key")
	locked, held, err := enterUnless(ctx, l, r, key, nil)
	return locked, held.Release, err
}

// enterUnless is Enter, unless drop is not nil and true after the keys were read: then it takes no lock, reports
// nothing, and returns a nil bridge.Held.
func enterUnless[R any](ctx context.Context, l *Locker, r R, key Key[R], drop *bool) (context.Context, bridge.Held, error) {
	var few [4]lockKey // avoids an allocation for most requests
	keys, unread, err := readKeys(l, key.node, few[:0], r, drop)
	switch {
	case drop != nil && *drop:
		return ctx, nil, nil
	case err != nil:
		err = l.ofRequest(err, false)
		l.observeUnread(ctx, unread, false, err)
		return ctx, noLocks{}, err
	}
	locked, held, err := l.enter(ctx, keys)
	return locked, held, l.ofRequest(err, false)
}

// readKeys reads the keys of a request, and adds them to keys. A key that takes no lock is a zero
// lockKey. The error refuses the request. unread is the key that has the error, with its name alone.
// drop is that of enterUnless.
func readKeys[R any](l *Locker, node bridge.Node[R], keys []lockKey, r R, drop *bool) (read []lockKey, unread lockKey, err error) {
	unread.Name = nameOfUnread(node.About)
	if node.About.NeedsWait && l.waitOr(0) == 0 {
		return nil, unread, asKeyError(errNeedWait)
	}
	env := l.env()
	env.Drop = drop
	all := node.All
	if all == nil {
		read, err = readKey(node, env, keys, r)
		return read, unread, err
	}
	for i := range all {
		if keys, err = readKey(all[i], env, keys, r); err != nil {
			unread.Name = cmp.Or(unread.Name, nameOfUnread(all[i].About))
			return nil, unread, err
		}
	}
	return keys, unread, nil
}

// env returns what reading a key needs beside the request.
func (l *Locker) env() bridge.Env {
	return bridge.Env{MaxBody: cmp.Or(l.settings.requests.MaxBody, bridge.DefaultMaxBody)}
}

// readKey reads one key of a request, and adds it to keys.
func readKey[R any](node bridge.Node[R], env bridge.Env, keys []lockKey, r R) ([]lockKey, error) {
	key, err := readNode(node, env, r)
	if err != nil && !errors.Is(err, ErrSkip) {
		return nil, asKeyError(err)
	}
	return append(keys, key), nil
}

// enter takes the locks of the keys. A zero lockKey takes no lock.
func (l *Locker) enter(ctx context.Context, keys []lockKey) (locked context.Context, held bridge.Held, err error) {
	if !slices.ContainsFunc(keys, func(k lockKey) bool { return k.Raw != "" }) {
		return &unlockedContext{ctx, len(keys)}, noLocks{}, nil
	}
	all, err := acquireAll(ctx, l, keys, l.waitOr(0))
	if err != nil {
		if l.mayRunUnlocked(err) {
			observeUnlocked(ctx, l, keys, err)
			return &unlockedContext{ctx, len(keys)}, noLocks{}, nil
		}
		return ctx, noLocks{}, err
	}
	return all.ctx, (*locksOfRequest)(all), nil
}

// locksOfRequest is the LeaseSet of a request as a bridge.Held, which needs no memory of its own.
type locksOfRequest LeaseSet

// Release releases the locks.
func (s *locksOfRequest) Release() { _ = (*LeaseSet)(s).end() }

// isTwice reports whether a middleware with the same key has taken all of the locks for the same request.
func (s *locksOfRequest) isTwice(l *Locker, target string) bool {
	isOther := func(lease *Lease) bool {
		return lease.nested == nil || lease.target != target || lease.locker.settings.requests.Key != l.settings.requests.Key
	}
	isTwice := !slices.ContainsFunc(s.taken, isOther)
	for _, lease := range s.taken {
		lease.target = target
	}
	return isTwice
}

// noLocks are the locks of a request that has none.
type noLocks struct{}

// Release does nothing.
func (noLocks) Release() {}

// errNeedWait refuses a key of SharedWhen.
var errNeedWait = errors.New("SharedWhen needs WithWait above 0: without it, reads can refuse a write for ever")
