package store

import "time"

// An Attempt is one idempotent request, beside the lock under which it runs.
// The record of its key says what has become of those before it.
type Attempt struct {
	// Fingerprint is that of the request: another one with the same key is a
	// mismatch.
	Fingerprint []byte
	// Keep is how long the record is kept.
	Keep time.Duration
	// Rerun lets it run after an attempt that died in the middle.
	Rerun bool
}

// A Verdict says why an attempt is not to run.
type Verdict int

// The verdicts.
const (
	// Undecided: nothing in the record keeps it from running.
	Undecided Verdict = iota
	// Done: an earlier attempt was done, and its answer is the record.
	Done
	// Sealed: an earlier attempt was done, and its answer was not kept.
	Sealed
	// Mismatch: the record is that of another fingerprint.
	Mismatch
	// Interrupted: an earlier attempt died, and this one may not run again.
	Interrupted
)

// An Ending says what a Release makes of the record of its attempt.
type Ending int

// The endings of an attempt.
const (
	// Abort: it did not take place. For a while the record keeps late copies of
	// its commands from beginning it again.
	Abort Ending = iota
	// Commit: it was done, and Record is its answer.
	Commit
	// Seal: it was done, and its answer is not kept.
	Seal
)

// A Stored says what became of a record.
type RecordStatus int

// What can become of a record.
const (
	// NotStored: the record is that of another attempt, which began after this
	// one had lost the key.
	NotStored RecordStatus = iota
	// WasStored: as the ending says, now or by an earlier send.
	WasStored
	// Restored: the same, but there was no record any more.
	Restored
)
