package store

import (
	"context"
	"time"
)

// A Resolution says how an operator ends an attempt that died.
type Resolution int

// The resolutions.
const (
	// ResolveNotDone: the request was not done, so the next one runs.
	ResolveNotDone Resolution = iota + 1
	// ResolveDone: the request was done, without an answer.
	ResolveDone
	// ResolveAnswered: the request was done, and Record is its answer.
	ResolveAnswered
	// NoteReported: the outcome stays unknown, and the record notes that an observer has
	// received an event about it: see Answer.Unreported.
	NoteReported
)

// Keeps reports whether the record stays.
func (r Resolution) Keeps() bool { return r == ResolveDone || r == ResolveAnswered }

// A ResolveRequest ends an attempt that died. Forget and ResolveDone also end a damaged record.
type ResolveRequest struct {
	// Key and Bound are those of a Target. Lock is the name of the lock instead of Key, if it
	// is not "": see OpenRecord.
	Key, Lock string
	Bound     time.Duration
	// Seen names the attempt that the operator has seen: see Outcome. Another attempt is
	// not resolved. Token is the token of the attempt instead, if it is not "".
	Seen, Token string
	Resolution  Resolution
	// Keep is how long the record is kept, also by Forget, to refuse a late commit of the
	// attempt. Record is the answer, if the Resolution has one.
	Keep   time.Duration
	Record []byte
}

// A ResolveStatus is the result of a Resolve.
type ResolveStatus int

// The results of a Resolve. Except for Resolved, nothing has changed.
const (
	// NoRecord: there is no attempt at the request.
	NoRecord ResolveStatus = iota
	// Resolved: the record is as the request says, by this send or by an earlier one.
	Resolved
	// StillRunning: the attempt runs, holding the key.
	StillRunning
	// Changed: the record is that of another attempt, or the attempt has ended.
	Changed
)

// An OutcomeRequest asks what became of a request.
type OutcomeRequest struct {
	// Key, Lock and Bound are those of a ResolveRequest.
	Key, Lock string
	Bound     time.Duration
}

// A RecordState is the state of the record of a request.
type RecordState int

// The states of a record.
const (
	// Absent: there is no record.
	Absent RecordState = iota
	// Damaged: the record cannot be read.
	Damaged
	// Running: the attempt runs, holding the key.
	Running
	// Unknown: the attempt has died, or runs after it has lost the key.
	Unknown
	// WasDone: the request was done, without an answer.
	WasDone
	// WasAnswered: the request was done, with an answer.
	WasAnswered
)

// An Outcome is what the record says about a request.
type Outcome struct {
	State RecordState
	// Attempt names the attempt: the SHA-1 of its token, in hex. The name does not reveal
	// the token.
	Attempt string
	// Number counts the attempts, from 1, if the State is Running or Unknown.
	Number int
	// Left is how long the record will be kept.
	Left time.Duration
	// Fingerprint is that of the request. It is empty if a damaged record has none.
	Fingerprint string
	// First is the Reference of the attempt; "" is none.
	First string
}

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
