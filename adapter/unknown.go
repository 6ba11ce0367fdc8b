package adapter

import (
	"errors"
	"fmt"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/bridge"
)

// Causes of an unknown outcome, for core.Attempt.Unknown. They contain nothing from the
// request, and no text of the program's errors.
var (
	errDecidedUnknown  = errors.New("reqlock: the handler decided EndUnknown")
	errPanicked        = errors.New("reqlock: the handler panicked or ended its goroutine")
	errContextEnded    = errors.New("reqlock: the handler gave no answer after its context had ended")
	errRanRefused      = errors.New("reqlock: the request ran, and was refused when it was tried again")
	errRunsOn          = errors.New("reqlock: the request was answered while it still ran in another goroutine")
	errResent          = errors.New("reqlock: the proxy has sent the request more than once")
	errTimedOut        = errors.New("reqlock: a context of the handler had ended")
	errBrokenBody      = errors.New("reqlock: the body of the request broke off")
	errNoStatus        = errors.New("reqlock: the handler failed without a status")
	errDeciderPanicked = errors.New("reqlock: the function of WithUnknown or WithStored panicked")
)

// unknownCause returns why decide returned EndUnknown. Its arguments are those of decide.
func (x *Exchange) unknownCause(status int, returned bool, cut error) error {
	switch {
	case core.Ending(bridge.Decision(x.attempt)) == core.EndUnknown:
		return errDecidedUnknown
	case !returned:
		return errPanicked
	case x.isCutOff(cut):
		return errContextEnded
	case x.refusedLate:
		return errRanRefused
	case x.recorder.runsOn():
		return errRunsOn
	case x.body.err() != nil:
		return errBrokenBody
	case x.recorder.wasResent():
		return errResent
	case x.timedOut, cut != nil:
		return errTimedOut
	case status == 0:
		return errNoStatus
	}
	return fmt.Errorf("reqlock: the handler ended with status %d", status)
}
