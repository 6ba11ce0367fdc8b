package inspect

import (
	"cmp"
	"context"
	"slices"
)

// Locks lists the locks that are held. It looks through all keys: see the package comment. Other
// clients take and release locks meanwhile, so the list may miss a lock that was taken after Locks has
// begun, and may have one that was released since. A queue whose lock nobody holds is not in the list.
//
// If ctx ends or Redis fails, Locks returns the locks that it has found, with Truncated, and the error.
func (i *Inspector) Locks(ctx context.Context, filter Filter) (Page, error) {
	page := Page{}
	found := make(map[string]bool)
	s := scanner{Inspector: i, pattern: i.names.LockPattern(filter.pattern()), kind: "string"}
	err := s.run(ctx, func(keys reader, names []string) (bool, error) {
		locks, err := i.readLocks(ctx, keys, names, filter.Process != "")
		for _, lock := range locks {
			if len(lock.Holders) == 0 || found[lock.Key.name] || !filter.hasLock(&lock) {
				continue
			}
			if len(page.Locks) == i.limit {
				return false, nil
			}
			found[lock.Key.name] = true
			lock.Waiters, lock.FenceMax = nil, 0
			page.Locks = append(page.Locks, lock)
		}
		return true, err
	})
	page.Scan = s.Scan
	slices.SortFunc(page.Locks, func(a, b Lock) int { return cmp.Compare(a.Key.name, b.Key.name) })
	return page, err
}

// Lock reads one lock. The key may be written in any of these ways, and the first one counts for
// which there is a lock: the key itself; the name in Redis of the lock or of a key beside it; the
// endpoint key of an idempotent request; the digest in a line of the log. For a digest, Lock looks
// through all keys.
//
// It returns ErrNotFound if nobody holds the lock, and nobody waits for it.
func (i *Inspector) Lock(ctx context.Context, key string) (Lock, error) {
	lock, err := i.findLock(ctx, key)
	if err != nil {
		return Lock{}, err
	}
	if lock.Processes, err = i.processesOf(ctx, &lock); err != nil {
		return Lock{}, err
	}
	return lock, nil
}

// findLock is Lock without the Processes.
func (i *Inspector) findLock(ctx context.Context, key string) (Lock, error) {
	for _, name := range i.spellings(key) {
		locks, err := i.readLocks(ctx, i.reader(), []string{name}, true)
		if err != nil {
			return Lock{}, err
		}
		if len(locks) > 0 {
			return locks[0], nil
		}
	}
	if !isDigest(key) {
		return Lock{}, ErrNotFound
	}
	return i.lockOfDigest(ctx, key)
}

// spellings returns the names of the locks that the operator may mean.
func (i *Inspector) spellings(key string) []string {
	if key == "" {
		return nil
	}
	names := []string{i.names.Lock(key)}
	if lock, _, ok := i.names.OfAny(key); ok && !slices.Contains(names, lock) {
		names = append(names, lock)
	}
	return append(names, i.names.Lock(attemptMark+key))
}

// lockOfDigest finds the lock whose key has this digest.
func (i *Inspector) lockOfDigest(ctx context.Context, digest string) (lock Lock, err error) {
	err = ErrNotFound
	s := scanner{Inspector: i, pattern: i.names.LockPattern("*"), kind: "string"}
	failed := s.run(ctx, func(keys reader, names []string) (bool, error) {
		for _, name := range names {
			if key, isLock := i.names.OfLock(name); !isLock || (Key{key, name}).String() != digest {
				continue
			}
			locks, failed := i.readLocks(ctx, keys, []string{name}, true)
			if len(locks) > 0 {
				lock, err = locks[0], nil
			}
			return failed == nil && err != nil, failed
		}
		return true, nil
	})
	if failed != nil {
		return Lock{}, failed
	}
	return lock, err
}
