package inspect

import (
	"strings"

	"github.com/reqlock/reqlock/core"
)

// A Filter says which locks or records a list has. The zero Filter is all of them.
type Filter struct {
	// Match is a pattern of Redis for the key, such as "account:*" or "*42". A record is matched
	// with its endpoint key, unless that has a hash tag of its own. "" matches all keys.
	Match string
	// Process is the id of a process, or its first digits: the locks that it holds or waits for, and
	// the records of its attempts.
	Process string
	// MinWaiting is how many processes wait for the lock, at least. It does not affect Records.
	MinWaiting int
	// State is the state of the record. 0 is any state. It does not affect Locks.
	State core.RecordState
}

// pattern returns Match as a pattern.
func (f Filter) pattern() string {
	if f.Match == "" {
		return "*"
	}
	return f.Match
}

// hasLock reports whether the list has the lock.
func (f Filter) hasLock(l *Lock) bool {
	if l.Waiting < f.MinWaiting {
		return false
	}
	if f.Process == "" {
		return true
	}
	for _, h := range l.Holders {
		if h.Process != "" && strings.HasPrefix(h.Process, f.Process) {
			return true
		}
	}
	for _, w := range l.Waiters {
		if w.Process != "" && strings.HasPrefix(w.Process, f.Process) {
			return true
		}
	}
	return false
}

// hasRecord reports whether the list has the record.
func (f Filter) hasRecord(r *Record) bool {
	return (f.State == 0 || r.State == f.State) && (f.Process == "" || r.Process != "" && strings.HasPrefix(r.Process, f.Process))
}

// A Scan says how much of the keys a list is about.
type Scan struct {
	// Scanned is about how many keys the list has looked at, and DBSize is how many keys there are,
	// with those of other programs. DBSize is 0 if a server does not say it,
	// as without the right +dbsize.
	Scanned, DBSize int
	// Truncated is true if the list has not looked at all keys: it has reached the limit of
	// WithLimit, or failed.
	Truncated bool
}

// A Page is a list of locks.
type Page struct {
	Scan

	// Locks are sorted by their names in Redis.
	Locks []Lock
}

// A RecordPage is a list of records.
type RecordPage struct {
	Scan

	// Records are sorted by their keys.
	Records []Record
}
