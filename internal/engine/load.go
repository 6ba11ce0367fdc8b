package engine

import (
	"slices"
	"time"
)

// A Load says what an engine does at one time.
type Load struct {
	// Held is how many leases have a holder, and Waiting how many callers wait.
	Held, Waiting int
	// Longest are the holds that have lasted longest, the longest one first.
	Longest []LongHold
}

// A LongHold is a hold of a Load, with the Key, the Name and the Caller of its Request.
type LongHold struct {
	Key, Name, Caller string
	Since             time.Time
}

// Load returns the load, with at most this many of the longest holds. It locks one shard after the
// other, so it delays no lock for long.
func (e *Engine) Load(longest int) Load {
	load := Load{Waiting: int(e.limits.waiting.Load())}
	e.eachHeld(func(q *queue) {
		h := q.lease.holder
		if h.request.Key == searchKey {
			return
		}
		load.Held++
		if n := len(load.Longest); n == longest && !h.since.Before(load.Longest[n-1].Since) {
			return
		}
		at, _ := slices.BinarySearchFunc(load.Longest, h.since, func(l LongHold, since time.Time) int { return l.Since.Compare(since) })
		load.Longest = slices.Insert(load.Longest, at, LongHold{h.request.Key, h.request.Name, h.request.Caller, h.since})
		load.Longest = load.Longest[:min(len(load.Longest), longest)]
	})
	return load
}

// Warn reports a warning of the owner as an event.
func (e *Engine) Warn(err error) { e.onWarning(err) }
