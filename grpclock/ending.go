package grpclock

import (
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"

	"github.com/reqlock/reqlock/core"
)

// A Failure is how the handler of an idempotent call failed: see WithUncertain.
type Failure struct {
	// Code is the code that is sent, as for WithStored. It is UNKNOWN if the handler
	// panicked.
	Code codes.Code
	// Panic is true if the handler panicked or ended its goroutine.
	Panic bool
	// Err is the error that the handler returned. It is nil if the handler panicked.
	Err error
}

// saysNothing reports whether a code leaves the outcome of a call unknown: the handler
// failed in the middle, or it returns the code of another service that did.
func saysNothing(code codes.Code) bool {
	switch code {
	case codes.Canceled, codes.Unknown, codes.DeadlineExceeded, codes.Internal, codes.DataLoss:
		return true
	default:
		return false
	}
}

// decide returns how the attempt of a handler ends: StoreAnswer, DropAnswer or Uncertain.
// What decides is, in this order: the handler's decision, WithUncertain and WithStored.
func (c *config) decide(decision core.Decision, f Failure) core.Decision {
	switch decision {
	case core.Uncertain, core.DropAnswer:
		return decision
	case core.StoreAnswer:
		if f.Panic {
			return core.Uncertain // there is no answer to store
		}
		return decision
	case core.Undecided:
	}
	var refused *refusal // by an interceptor behind this one: the handler did not run
	switch {
	case errors.As(f.Err, &refused):
		return core.DropAnswer
	case f.Code != codes.OK && c.isUncertain(f):
		return core.Uncertain
	case f.Panic, !c.stored(f.Code):
		return core.DropAnswer
	}
	return core.StoreAnswer
}

// Causes of an unknown outcome, for core.Attempt.InterruptCause. They contain nothing from the
// call, and no text of the program's errors.
var (
	errUncertain       = errors.New("reqlock: the handler decided Uncertain")
	errHandlerPanicked = errors.New("reqlock: the handler panicked or ended its goroutine")
	errDeciderPanicked = errors.New("reqlock: the function of WithUncertain or WithStored panicked")
)

// unknownCause returns why decide returned Uncertain. Its arguments are those of decide.
func unknownCause(decision core.Decision, f Failure) error {
	switch {
	case decision == core.Uncertain:
		return errUncertain
	case f.Panic:
		return errHandlerPanicked
	}
	return fmt.Errorf("reqlock: the handler ended with code %v", f.Code)
}

// isUncertain calls the function of WithUncertain, or returns its default.
func (c *config) isUncertain(f Failure) bool {
	if c.uncertain != nil {
		return c.uncertain(f)
	}
	return f.Panic || saysNothing(f.Code) && !c.stored(f.Code)
}
