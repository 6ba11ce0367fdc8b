package core

import (
	"context"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"github.com/reqlock/reqlock/internal/engine"
)

// A RecordState says what became of an idempotent request.
type RecordState int

// The states of a request.
const (
	// StateRunning: an attempt runs.
	StateRunning RecordState = iota + 1
	// StateUnknown: it is unknown whether the request took effect. Its attempt died, or
	// was ended by Unknown, or its commit failed. Exception: an attempt in another
	// process, which has lost its lease, may still run. Resolve ends this state.
	StateUnknown
	// StateDone: the request was done, and its answer was not stored. Later requests
	// with the key get ErrUnreplayable.
	StateDone
	// StateAnswered: the request was done. Later requests with the key get its answer.
	StateAnswered
	// StateDamaged: the record cannot be read. Later requests with the key get
	// ErrUnreplayable. Resolve ends this state by NotDone or Done.
	StateDamaged
)

// String returns the state as one lower-case word.
func (s RecordState) String() string {
	switch s {
	case StateRunning:
		return "running"
	case StateUnknown:
		return "unknown"
	case StateDone:
		return "done"
	case StateAnswered:
		return "answered"
	case StateDamaged:
		return "damaged"
	default:
		return "invalid"
	}
}

// A Record is what is recorded in Redis about an idempotent request: see
// Locker.ReadRecord.
type Record struct {
	// State says what became of the request.
	State RecordState
	// Attempt names the attempt that the State is about. Resolve takes it.
	Attempt AttemptID
	// Number counts the attempts at the request, from 1, while its State is StateRunning
	// or StateUnknown. Otherwise it is 0. See Attempt.Number.
	Number int
	// Retention is how long Redis will keep the record: see WithRetention.
	Retention time.Duration
	// First is the reference of the attempt that the State is about: see WithReference. It is "" if there is
	// none. It may be a text of a client: quote it where it is printed.
	First string
}

// An AttemptID names one attempt at a request. It is a digest, and contains neither the key
// nor a token. Two attempts never have the same AttemptID, so == compares them. The zero
// AttemptID names none.
type AttemptID struct{ digest string }

// attemptIDLen is the length of an AttemptID as text.
const attemptIDLen = 40

// String returns the id as 40 hex digits, or "" for the zero AttemptID.
func (id AttemptID) String() string { return id.digest }

// MarshalText returns the same as String.
func (id AttemptID) MarshalText() ([]byte, error) { return []byte(id.digest), nil }

// UnmarshalText reads the result of MarshalText. It returns an error for any other text.
func (id *AttemptID) UnmarshalText(text []byte) error {
	if _, err := hex.DecodeString(string(text)); err != nil || len(text) != attemptIDLen && len(text) != 0 {
		return errors.New("reqlock: AttemptID: the text is not the 40 hex digits of Record.Attempt")
	}
	id.digest = strings.ToLower(string(text))
	return nil
}

// recordStates maps the engine's states of a record to the states of this package.
var recordStates = [...]RecordState{
	engine.Running:     StateRunning,
	engine.Unknown:     StateUnknown,
	engine.WasDone:     StateDone,
	engine.WasAnswered: StateAnswered,
	engine.Damaged:     StateDamaged,
}

// ReadRecord reads what became of the idempotent request with the key. It changes nothing. Before
// an operator calls Resolve, ReadRecord says which attempt is concerned. The key is the argument
// of Begin: EndpointKey makes it from what a client sent, and the event OutcomeUnknown has it.
//
// The error is an *Error of the kind ErrNotFound if Redis has no record of the request: it has not
// begun, was aborted, its record has expired, or the key is not that of the request. EndpointKey
// cannot check the route and the parts, so do not conclude that the request did not happen.
// Otherwise it is one of Lock's kinds for a key that cannot be used, or ErrUnavailable. If ctx
// ended before Redis replied, it is also ctx's error. On a Locker of NewQuorum it is
// errors.ErrUnsupported.
func (l *Locker) ReadRecord(ctx context.Context, key string) (Record, error) {
	if !l.backend.keepsRecords() {
		return Record{}, errNoRecords
	}
	if err := checkKey(key); err != nil {
		return Record{}, err
	}
	mustContext(ctx)
	found, err := l.engine.Outcome(ctx, attemptMark+key)
	switch {
	case err != nil:
		return Record{}, l.withRequests(refusalOf(err, l.settings.retryAfter))
	case found.State == engine.Absent:
		return Record{}, l.withRequests(&Error{Kind: ErrNotFound})
	}
	return Record{
		State:     recordStates[found.State],
		Attempt:   AttemptID{found.Attempt},
		Number:    found.Number,
		Retention: found.Left,
		First:     found.First,
	}, nil
}
