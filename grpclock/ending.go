package grpclock

import (
	"errors"

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

// An ending is how an attempt ends.
type ending int

const (
	unknown  ending = iota // the outcome is unknown, as after a crash
	freed                  // the next call with the key runs
	complete               // copies get the answer, or are refused if it cannot be replayed
)

// ending returns how the attempt of a handler ends. What decides is, in this order: the
// handler's decision, WithUncertain and WithStored.
func (c *config) ending(decision core.Decision, f Failure) ending {
	switch decision {
	case core.Uncertain:
		return unknown
	case core.DropAnswer:
		return freed
	case core.StoreAnswer:
		if f.Panic {
			return unknown // there is no answer to store
		}
		return complete
	case core.Undecided:
	}
	var refused *refusal // by an interceptor behind this one: the handler did not run
	switch {
	case errors.As(f.Err, &refused):
		return freed
	case f.Code != codes.OK && c.isUncertain(f):
		return unknown
	case f.Panic, !c.stored(f.Code):
		return freed
	}
	return complete
}

// isUncertain calls the function of WithUncertain, or returns its default.
func (c *config) isUncertain(f Failure) bool {
	if c.uncertain != nil {
		return c.uncertain(f)
	}
	return f.Panic || saysNothing(f.Code) && !c.stored(f.Code)
}
