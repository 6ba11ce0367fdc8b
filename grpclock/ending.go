package grpclock

import (
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"

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

// frees reports whether a code says that the call was not executed, and that another
// attempt may end in another way. It is one of credentials, of rights, or of another call
// that was in the way.
func frees(code codes.Code) bool {
	return code == codes.Unauthenticated || code == codes.PermissionDenied || code == codes.Aborted
}

// saysNothing reports whether a code leaves the outcome of a call unknown: the handler
// failed in the middle, or it returns the code of another service that did. That is each
// code that says neither what became of the call nor that nothing did. UNAVAILABLE is among
// them, because a gRPC client returns it if a connection breaks after the request was sent,
// and RESOURCE_EXHAUSTED, because a client returns it for a reply above its own limit. A
// code that gRPC does not define counts as UNKNOWN.
func saysNothing(code codes.Code) bool { return !deterministic(code) && !frees(code) }

// decide returns how the attempt of a handler ends: EndCommit, EndDone, EndAbort or EndUnknown.
// What decides is, in this order: the handler's decision, a refusal, WithUnknown and
// WithStored. refused means that the call ends with the refusal of an interceptor behind this
// one. x is the exchange of the handler.
func (c *config) decide(decision core.Ending, f Failure, refused bool, x *exchange) core.Ending {
	switch decision {
	case core.EndUnknown, core.EndAbort:
		return decision
	case core.EndCommit, core.EndDone:
		if f.Panic {
			return core.EndUnknown // part of the work may be missing
		}
		return decision
	case core.EndUndecided:
		return c.judge(f, refused, x)
	case core.EndNoEffect:
		judged := c.judge(f, refused, x)
		if judged == core.EndUnknown && !x.runsOn() {
			return core.EndAbort
		}
		return judged
	}
	return core.EndUnknown // an unknown decision
}

// judge is decide for a handler whose decision leaves it to the answer.
func (c *config) judge(f Failure, refused bool, x *exchange) core.Ending {
	switch {
	case refused && x.mayHaveRun():
		return core.EndUnknown
	case refused:
		return core.EndAbort
	case x.hasRefusal(f.Err): // with another code, or beside another error, which may be the handler's
		return core.EndUnknown
	case f.Code != codes.OK && c.isUnknown(f):
		return core.EndUnknown
	case f.Panic, !c.stored(f.Code):
		if c.mayHaveEnded(x) {
			return core.EndUnknown
		}
		return core.EndAbort
	}
	return core.EndCommit
}

// mayHaveEnded reports whether the call may have ended in another way than its status says, which
// is a failure that frees the key: it runs on, was refused late, was cut off, or ended unknown
// inside. Or an interceptor inside has refused it, and something else has answered, which may have
// run it by other means.
func (c *config) mayHaveEnded(x *exchange) bool {
	cut := x.Err() != nil || x.broken.Load() || x.last.Load() != nil
	return x.runsOn() || x.late.Load() || cut && c.unknown == nil
}

// Causes of an unknown outcome, for core.Attempt.Unknown. They contain nothing from the
// call, and no text of the program's errors.
var (
	errDecidedUnknown  = errors.New("reqlock: the handler decided EndUnknown")
	errHandlerPanicked = errors.New("reqlock: the handler panicked or ended its goroutine")
	errRanRefused      = errors.New("reqlock: the call ran, and was refused when it was tried again")
	errRunsOn          = errors.New("reqlock: the call was answered while it still ran in another goroutine")
	errDeciderPanicked = errors.New("reqlock: the function of WithUnknown or WithStored panicked")
)

// unknownCause returns why decide returned EndUnknown. Its arguments are those of decide.
func unknownCause(decision core.Ending, f Failure, refused bool, x *exchange) error {
	switch {
	case decision == core.EndUnknown:
		return errDecidedUnknown
	case f.Panic:
		return errHandlerPanicked
	case x.runsOn():
		return errRunsOn
	case refused, x.last.Load() != nil:
		return errRanRefused
	}
	return fmt.Errorf("reqlock: the handler ended with code %v", f.Code)
}

// isUnknown calls the function of WithUnknown, or returns its default.
func (c *config) isUnknown(f Failure) bool {
	if c.unknown != nil {
		return c.unknown(f)
	}
	if !f.Panic && saysNothing(f.Code) {
		return !c.stored(f.Code)
	}
	return f.Panic || isTimeout(f.Err) || hasUnknown(f.Err)
}

// hasUnknown reports whether an error is sent as OUTCOME_UNKNOWN of reqlock: another call that the
// handler has made is unknown, and an operator may resolve it.
func hasUnknown(err error) bool { return reasonIn(sent(err)) == "OUTCOME_UNKNOWN" }
