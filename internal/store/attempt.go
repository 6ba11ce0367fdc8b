package store

import "time"

// An Attempt is one idempotent request that runs under the lock. The record of its key has
// the result of earlier attempts.
type Attempt struct {
	// Fingerprint identifies the request. Another fingerprint with the same key is a
	// mismatch.
	Fingerprint []byte
	// Keep is how long the record is kept.
	Keep time.Duration
	// Rerun allows the attempt to run after an attempt that died.
	Rerun bool
	// Reference is what an operator looks for in other logs, such as the id of a trace; "" is none. See
	// IsReference. The record has it, so that copies learn it.
	Reference string
}

// MaxReference is the largest length of a reference, in bytes.
const MaxReference = 64

// IsReference reports whether a text may be a reference: it is short, and has only printable characters of
// ASCII, also if a client has sent it.
func IsReference(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return text != "" && len(text) <= MaxReference
}

// A Verdict says why an attempt must not run.
type Verdict int

// The verdicts.
const (
	// Undecided: the record does not keep the attempt from running.
	Undecided Verdict = iota
	// Done: an earlier attempt was done, and the record has its answer.
	Done
	// Unreplayable: an earlier attempt was done, and its answer was not kept.
	Unreplayable
	// Mismatch: the record belongs to another fingerprint.
	Mismatch
	// Died: an earlier attempt died, and this one may not run again.
	Died
)

// An Ending says how a Release ends its attempt.
type Ending int

// The endings of an attempt.
const (
	// NoEnding leaves the record as it is.
	NoEnding Ending = iota
	// EndAbort: the attempt did not take place. For a while, the record keeps late copies of
	// its commands from beginning it again.
	EndAbort
	// EndCommit: the attempt is done, and Record is its answer.
	EndCommit
	// EndDone: the attempt is done, and its answer is not kept.
	EndDone
)

// IsFinal reports whether the attempt is done.
func (e Ending) IsFinal() bool { return e == EndCommit || e == EndDone }

// A RecordStatus is the result of a Release for the record of its attempt.
type RecordStatus int8

// The results for a record.
const (
	// NotStored: the record belongs to another attempt, which began after this one had
	// lost the key.
	NotStored RecordStatus = iota
	// WasStored: the record has the ending, by this send or by an earlier one.
	WasStored
	// Restored is WasStored for a record that was gone before.
	Restored
)
