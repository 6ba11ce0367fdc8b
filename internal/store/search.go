package store

import (
	"context"
	"time"
)

// A Searcher finds the records of idempotent requests.
type Searcher interface {
	// Search passes the records whose attempt has not ended to found, some at a time: it runs, or
	// has died. A record that changes meanwhile may be passed twice, or not at all. Search calls
	// found on its own goroutine. It returns the first error, also one of found; in a cluster the
	// other masters are searched all the same. It ends when ctx ends. No command
	// takes longer than the bound, and between commands Search pauses.
	Search(ctx context.Context, bound time.Duration, found func([]OpenRecord) error) error
}

// An OpenRecord is the record of a request whose attempt has not ended.
type OpenRecord struct {
	// Lock is the name of the lock in Redis, for the Lock of a request. Key is its key, or "" if
	// the name has only a digest of the key.
	Lock, Key string
	// Idle is how long ago the last command used the record; 0 is unknown.
	Idle time.Duration
	// Reported is the name of the attempt whose unknown outcome was reported: see NoteReported.
	Reported string
}
