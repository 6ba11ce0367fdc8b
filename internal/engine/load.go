package engine

import (
	"slices"
	"time"
)

// A Load says what an engine does at one time.
type Load struct {
	// Held is how many leases have a holder, and Waiting how many callers wait.
	Held, Waiting int
	// Holds are the holds, and Waits the keys with callers, that have lasted longest, the longest one
	// first.
	Holds []LongHold
	Waits []LongWait
}

// A Long is what has lasted since a time, with the Key, the Name and the Caller of a Request.
type Long struct {
	Key, Name, Caller string
	Since             time.Time
}

// A LongHold is a hold of a Load.
type LongHold struct {
	Long

	// Token is the token of the lease.
	Token string
	// Attempt says that the Request has an Attempt, and Shared that it is for a shared lease.
	Attempt, Shared bool
}

// A LongWait is a key of a Load, with what has lasted longest: the Request of one caller.
type LongWait struct {
	Long

	// Callers is how many callers wait for the key.
	Callers int
}

// Load returns the load, with at most this many of the longest holds, and of the longest waits. It locks
// one shard after the other, so it delays no lock for long.
func (e *Engine) Load(longest int) Load {
	load := Load{Waiting: int(e.limits.waiting.Load())}
	e.eachHeld(func(q *queue) {
		h := q.lease.holder
		if h.request.Key == searchKey {
			return
		}
		load.Held++
		hold := LongHold{h.long(), q.lease.token, h.request.Attempt != nil, h.request.Limit.IsShared()}
		load.Holds = insert(load.Holds, hold, longest)
	})
	e.eachShard(func(s *shard) {
		for _, root := range s.queues {
			if wait := root.longWait(); wait.Callers > 0 {
				load.Waits = insert(load.Waits, wait, longest)
			}
		}
	})
	return load
}

// longWait returns the callers that wait for the key of a root.
func (q *queue) longWait() (wait LongWait) {
	add := func(l *waitlist) {
		if l.queued == 0 {
			return
		}
		w := l.first
		for !w.queued {
			w = w.next
		}
		if wait.Callers == 0 || w.hold.since.Before(wait.Since) {
			wait.Long = w.hold.long()
		}
		wait.Callers += l.queued
	}
	add(&q.exclusive)
	for _, l := range q.shared.lists {
		add(l)
	}
	return wait
}

// long returns what has lasted since the hold began, or since its caller arrived.
func (h *Hold) long() Long { return Long{h.request.Key, h.request.Name, h.request.Caller, h.since} }

// since returns Since.
func (l Long) since() time.Time { return l.Since }

// insert adds an element to those that have lasted longest.
func insert[T interface{ since() time.Time }](to []T, element T, longest int) []T {
	if n := len(to); n == longest && !element.since().Before(to[n-1].since()) {
		return to
	}
	at, _ := slices.BinarySearchFunc(to, element, func(a, b T) int { return a.since().Compare(b.since()) })
	to = slices.Insert(to, at, element)
	return to[:min(len(to), longest)]
}

// Warn reports a warning of the owner as an event.
func (e *Engine) Warn(err error) { e.onWarning(err) }
