package core

import (
	"context"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"github.com/reqlock/reqlock/internal/engine"
)

// A RequestState says what became of an idempotent request.
type RequestState int

// The states of a request.
const (
	// RequestRunning: an attempt runs.
	RequestRunning RequestState = iota + 1
	// RequestUnknown: it is unknown whether the request took effect. Its attempt died, or
	// was ended by Interrupt, or its commit failed. Exception: an attempt in another
	// process, which has lost its lease, may still run. Resolve ends this state.
	RequestUnknown
	// RequestDone: the request was done, and its answer was not stored. Later requests
	// with the key get ErrUnreplayable.
	RequestDone
	// RequestAnswered: the request was done. Later requests with the key get its answer.
	RequestAnswered
	// RequestDamaged: the record cannot be read. Later requests with the key get
	// ErrUnreplayable. Resolve ends this state by Forget or Done.
	RequestDamaged
)

// String returns the state as one lower-case word.
func (s RequestState) String() string {
	switch s {
	case RequestRunning:
		return "running"
	case RequestUnknown:
		return "unknown"
	case RequestDone:
		return "done"
	case RequestAnswered:
		return "answered"
	case RequestDamaged:
		return "damaged"
	default:
		return "invalid"
	}
}

// A RequestOutcome is what is recorded in Redis about an idempotent request: see
// Locker.Outcome.
type RequestOutcome struct {
	// State says what became of the request.
	State RequestState
	// Seen names the attempt that the State is about. Resolve takes it.
	Seen AttemptID
	// Number counts the attempts at the request, from 1, while its State is RequestRunning
	// or RequestUnknown. Otherwise it is 0. See Attempt.Number.
	Number int
	// Retention is how long Redis will keep the record: see WithRetention.
	Retention time.Duration
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
		return errors.New("reqlock: AttemptID: the text is not the 40 hex digits of Outcome's Seen")
	}
	id.digest = strings.ToLower(string(text))
	return nil
}

// requestStates maps the engine's states of a record to the states of this package.
var requestStates = [...]RequestState{
	engine.Running:     RequestRunning,
	engine.Unknown:     RequestUnknown,
	engine.WasSealed:   RequestDone,
	engine.WasAnswered: RequestAnswered,
	engine.Damaged:     RequestDamaged,
}

// Outcome reads what became of the idempotent request with the key. It changes nothing. Before
// an operator calls Resolve, Outcome says which attempt is concerned. The key is the argument
// of Begin: EndpointKey of an adapter makes it from what a client sent, and the event
// OutcomeUnknown has it.
//
// The error is an *Error of the kind ErrNotFound if Redis has no record of the request: it
// has not begun, was aborted, or its record has expired. Otherwise it is one of Lock's kinds
// for a key that cannot be used, or ErrUnavailable. If ctx ended before Redis replied, it is
// also ctx's error. On a Locker of NewQuorum it is errors.ErrUnsupported.
func (l *Locker) Outcome(ctx context.Context, key string) (RequestOutcome, error) {
	if !l.KeepsRecords() {
		return RequestOutcome{}, errNoRecords
	}
	if err := checkKey(key); err != nil {
		return RequestOutcome{}, err
	}
	mustContext(ctx)
	outcome, err := l.engine.Outcome(ctx, attemptMark+key)
	switch {
	case err != nil:
		return RequestOutcome{}, refusalOf(err, l.settings.retryAfter)
	case outcome.State == engine.Absent:
		return RequestOutcome{}, &Error{Kind: ErrNotFound}
	}
	return RequestOutcome{
		State:     requestStates[outcome.State],
		Seen:      AttemptID{outcome.Attempt},
		Number:    outcome.Number,
		Retention: outcome.Left,
	}, nil
}
