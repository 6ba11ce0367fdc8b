package grpclock

import (
	"google.golang.org/grpc/codes"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
)

// A Failure is how the handler of an idempotent call failed: see WithUnknown.
type Failure struct {
	// Code is the code that is sent, as for WithStored. It is UNKNOWN if the handler
	// panicked.
	Code codes.Code
	// Panic is true if the handler panicked or ended its goroutine.
	Panic bool
	// Err is the error that the handler returned. It is nil if the handler panicked.
	Err error
}

// WithUnknown sets which failures leave the outcome of a call unknown, so that copies
// are refused with core.ErrOutcomeUnknown. The default is a panic, an error that is or wraps
// a timeout, and all codes that are not stored by default except
// PERMISSION_DENIED, ABORTED and UNAUTHENTICATED, unless WithStored stores them. All
// others free the key or are stored: see WithStored. core.WithRerunUnknown can let copies
// run instead.
//
// unknown is called for a handler that has decided nothing (core.Attempt.Decide), and
// that has panicked or returned another code than OK. It is not called if the call ends
// with the refusal of an interceptor of this package behind this one, unless the call has
// run as well. unknown must be safe for concurrent use. If unknown panics, the outcome
// is unknown.
//
// A nil unknown panics. WithUnknown is an option only for
// IdempotentUnaryServerInterceptor. It and core.WithFreeOnFailure are one setting: the later of
// the two counts.
func WithUnknown(unknown func(f Failure) bool) core.Option {
	return unknownSetting.Option(unknown)
}

// WithStored sets which answers are stored, by their code. An answer that is not
// stored frees the key, so that the next call with the key runs. Exception: the answers
// of WithUnknown, which is asked first. The default stores OK, INVALID_ARGUMENT,
// NOT_FOUND, ALREADY_EXISTS, FAILED_PRECONDITION, OUT_OF_RANGE and UNIMPLEMENTED. The
// code is the one that is sent: an error without a status is UNKNOWN, and the end of a
// context is CANCELED or DEADLINE_EXCEEDED.
//
// A refusal by an interceptor of this package behind this one, with which the call ends,
// is not stored. A handler can decide otherwise, see core.Attempt.Decide. stored must be
// safe for concurrent use. If stored panics, the outcome is unknown.
//
// A nil stored panics. WithStored is an option only for
// IdempotentUnaryServerInterceptor.
func WithStored(stored func(codes.Code) bool) core.Option {
	return storedSetting.Option(stored)
}

// The settings of WithUnknown and WithStored.
var (
	unknownSetting = adapter.NewSetting[func(Failure) bool](self, "WithUnknown", adapter.ForIdempotent)
	storedSetting  = adapter.NewSetting[func(codes.Code) bool](self, "WithStored", adapter.ForIdempotent)
)

// unknownOf returns the function of WithUnknown, or nil.
func unknownOf(l *core.Locker) func(adapter.RPCFailure) bool {
	unknown, isSet := unknownSetting.Value(l)
	if !isSet {
		return nil
	}
	return func(f adapter.RPCFailure) bool { return unknown(Failure{codes.Code(f.Code), f.Panic, f.Err}) }
}

// storedOf returns the function of WithStored, or nil.
func storedOf(l *core.Locker) func(code uint32) bool {
	stored, isSet := storedSetting.Value(l)
	if !isSet {
		return nil
	}
	return func(code uint32) bool { return stored(codes.Code(code)) }
}
