package adapter

import (
	"errors"
	"fmt"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/bridge"
)

// decide returns how the attempt of a handler ends: EndCommit, EndDone, EndAbort or EndUnknown.
// What decides is, in this order: the handler's decision, a refusal, the functions Unknown and
// Stored. isRefused means that the call ends with the refusal of a middleware behind this one.
func (x *RPCExchange[R]) decide(f RPCFailure, isRefused bool) core.Ending {
	switch decision := x.decision(); decision {
	case core.EndUnknown, core.EndAbort:
		return decision
	case core.EndCommit, core.EndDone:
		if f.Panic {
			return core.EndUnknown // part of the work may be missing
		}
		return decision
	case core.EndUndecided:
		return x.judge(f, isRefused)
	case core.EndNoEffect:
		judged := x.judge(f, isRefused)
		if judged == core.EndUnknown && !x.in.runsOn() {
			return core.EndAbort
		}
		return judged
	}
	return core.EndUnknown // an unknown decision
}

// decision returns what the handler has decided.
func (x *RPCExchange[R]) decision() core.Ending { return core.Ending(bridge.Decision(x.attempt)) }

// judge is decide for a handler whose decision leaves it to the answer.
func (x *RPCExchange[R]) judge(f RPCFailure, isRefused bool) core.Ending {
	switch {
	case isRefused && x.in.mayHaveRun():
		return core.EndUnknown
	case isRefused:
		return core.EndAbort
	case x.in.hasRefusal(f.Err): // with another code, or beside another error, which may be the handler's
		return core.EndUnknown
	case f.Code != rpcOK && x.isUnknown(f):
		return core.EndUnknown
	case f.Panic, !x.of.stored(f.Code):
		if x.mayHaveEnded() {
			return core.EndUnknown
		}
		return core.EndAbort
	}
	return core.EndCommit
}

// mayHaveEnded reports whether the call may have ended in another way than its status says, which
// is a failure that frees the key: it runs on, was refused late, was cut off, or ended unknown
// inside. Or a middleware inside has refused it, and something else has answered, which may have
// run it by other means.
func (x *RPCExchange[R]) mayHaveEnded() bool {
	refused, late := x.in.wasRefused()
	cut := x.base.Err() != nil || x.in.wasBroken() || refused
	return x.in.runsOn() || late || cut && x.of.unknown == nil
}

// isUnknown calls the function Unknown, or returns its default.
func (x *RPCExchange[R]) isUnknown(f RPCFailure) bool {
	if x.of.unknown != nil {
		return x.of.unknown(f)
	}
	if !f.Panic && saysNothing(f.Code) {
		return !x.of.stored(f.Code)
	}
	return f.Panic || x.of.rpc.isTimeout(f.Err) || x.hasUnknown(f.Err)
}

// hasUnknown reports whether an error is sent as OUTCOME_UNKNOWN of reqlock: another call that the
// handler has made is unknown, and an operator may resolve it.
func (x *RPCExchange[R]) hasUnknown(err error) bool {
	return x.of.rpc.reasonOf(err) == "OUTCOME_UNKNOWN"
}

// Causes of an unknown outcome that only an RPC has: see errPanicked.
var (
	errCallRefused = errors.New("reqlock: the call ran, and was refused when it was tried again")
	errCallRunsOn  = errors.New("reqlock: the call was answered while it still ran in another goroutine")
)

// unknownCause returns why decide returned EndUnknown. Its arguments are those of decide.
func (x *RPCExchange[R]) unknownCause(f RPCFailure, isRefused bool) error {
	refused, _ := x.in.wasRefused()
	switch {
	case x.decision() == core.EndUnknown:
		return errDecidedUnknown
	case f.Panic:
		return errPanicked
	case x.in.runsOn():
		return errCallRunsOn
	case isRefused, refused:
		return errCallRefused
	}
	return fmt.Errorf("reqlock: the handler ended with code %s", codeName(f.Code))
}
