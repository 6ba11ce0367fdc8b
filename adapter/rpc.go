package adapter

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/reqlock/reqlock/core"
)

// An RPC says how an adapter reads the calls of its RPC framework, and how the framework sends
// errors. Each function is required, except the last three, and must be safe for concurrent use.
type RPC[R any] struct {
	// Method returns the full method of a call: "/pkg.Service/Method".
	Method func(R) string
	// Header returns the values of metadata, for core.WithOptionalKey. Case does not matter in the
	// name: it is as the program has written it, or "Idempotency-Key".
	Header func(r R, name string) []string
	// Fingerprint is the default of core.WithFingerprint.
	Fingerprint func(R) ([]byte, error)

	// Code returns the code with which the framework sends err, and false if it has none. Only err
	// itself counts, and no error that it wraps.
	Code func(err error) (code uint32, ok bool)
	// Reason returns the reason of reqlock that the status of err has, such as "BUSY", or "". Only err
	// itself counts.
	Reason func(err error) string
	// Refuse returns the error for the client of a call that core refuses because of why. It wraps
	// cause.
	Refuse func(why, cause error) error

	// Implied returns the code with which the framework sends an error in whose tree no error has a
	// code. nil is that of gRPC: CANCELED and DEADLINE_EXCEEDED for the end of a context, else UNKNOWN.
	Implied func(err error) (code uint32)

	// Stored and Unknown return the functions of the adapter's own options that a Locker has: which
	// codes are stored, and which failures leave the outcome unknown. nil is the default, in both places:
	// for an adapter without such options, and for a Locker on which they are not set.
	Stored  func(*core.Locker) func(code uint32) bool
	Unknown func(*core.Locker) func(RPCFailure) bool
}

// An RPCFailure is how the handler of an idempotent call failed.
type RPCFailure struct {
	Code  uint32 // the code that is sent; UNKNOWN if the handler panicked
	Panic bool   // the handler panicked or ended its goroutine
	Err   error  // what the handler returned; nil if it panicked
}

// Refused says that the middleware of an Entry refuses the call, and returns err for that.
func (x RPC[R]) Refused(entry Entry, err error) {
	if x.codeOf(err) == rpcInternal && x.reasonOf(err) != "" { // otherwise the program has chosen the status
		refusal := RefusalOf(err)
		refusal.HTTP = http.StatusInternalServerError // whatever the error asks for on HTTP
		entry.mistakes.answered(err, refusal)
	}
	if entry.pass != nil {
		entry.pass.refuseOnce(refused{status: int(x.codeOf(err)), ours: true, err: err})
	}
}

// Returned says that the handler behind a Lock has returned err. It returns the error for the client,
// as LossOf does.
func (x RPC[R]) Returned(entry Entry, err error) error {
	if p := entry.pass; p != nil {
		if x.refusalIn(p.in, err) == nil { // another service that refuses a call of the handler has the same status
			p.set(func() { p.rejected = false })
		}
		entry.Returned()
	}
	return x.LossOf(entry.ctx, err)
}

// LossOf returns the error of a handler for the client. ctx is the context of its lease. If the error
// has no status of its own, and says that the lease has ended, or the context because of that, the
// status is that of core.ErrLost. This is no refusal: the call ran.
func (x RPC[R]) LossOf(ctx context.Context, err error) error {
	err, _ = x.lossOf(ctx, err)
	return err
}

// lossOf is LossOf, and reports whether the handler has lost its lease.
func (x RPC[R]) lossOf(ctx context.Context, err error) (sent error, lost bool) {
	if err == nil {
		return nil, false
	}
	if own, ok := x.own(err); ok {
		if code, _ := x.Code(own); code != rpcOK {
			return err, false
		}
	}
	if cause := context.Cause(ctx); isContextEnd(err) && isLoss(cause) {
		err = errors.Join(err, cause)
	}
	if isLoss(err) {
		return x.Refuse(core.ErrLost, err), true
	}
	return err, false
}

// own returns the first error in the tree of err that has a code of its own.
func (x RPC[R]) own(err error) (own error, ok bool) {
	walk(err, func(link error) bool {
		if _, ok = x.Code(link); ok {
			own = link
		}
		return ok
	})
	return own, ok
}

// codeOf returns the code that the framework sends for the error of a handler. The status OK, or a nil
// one, is none for an error.
func (x RPC[R]) codeOf(err error) uint32 {
	if own, ok := x.own(err); ok {
		if code, _ := x.Code(own); code != rpcOK {
			return code
		}
	}
	switch {
	case err == nil:
		return rpcOK
	case x.Implied != nil:
		return x.Implied(err)
	case errors.Is(err, context.DeadlineExceeded):
		return rpcDeadlineExceeded
	case errors.Is(err, context.Canceled):
		return rpcCanceled
	}
	return rpcUnknown
}

// reasonOf returns the reason of reqlock in the status that the framework sends for an error, or "".
func (x RPC[R]) reasonOf(err error) string {
	if own, ok := x.own(err); ok {
		return x.Reason(own)
	}
	return ""
}

// isTimeout reports whether an error of a handler says that the time of the call, of its lease, or of
// a connection was over, also below a status that an interceptor made of it. So the call may have
// taken effect.
func (x RPC[R]) isTimeout(err error) bool {
	return isTimeout(err) || walk(err, func(link error) bool {
		code, _ := x.Code(link)
		return code == rpcDeadlineExceeded || code == rpcCanceled
	})
}

// Chosen returns the error that an error handler has chosen for a call which is refused because of err,
// by returning own: the first error in the tree of own that has a code of its own, or nil. It does not
// search below err or another error of core: the error handler did not choose a code there.
func (x RPC[R]) Chosen(own, err error) error {
	if own == nil || same(own, err) {
		return nil
	}
	if _, ours := own.(*core.Error); ours { //nolint:errorlint // the tree is walked here
		return nil
	}
	if code, ok := x.Code(own); ok && code != rpcOK {
		return own
	}
	wrapped := []error{errors.Unwrap(own)}
	if joined, ok := own.(interface{ Unwrap() []error }); ok {
		wrapped = joined.Unwrap()
	}
	for _, below := range wrapped {
		if chosen := x.Chosen(below, err); chosen != nil {
			return chosen
		}
	}
	return nil
}

// refusalIn returns the refusal of a middleware inside that an error is, or nil. An error is a refusal
// if it wraps only that one, and is sent with its code, or if it has the code and the reason of the
// last one. A refusal that is joined with another error does not count, because that may be the
// handler's, and neither does a status without a reason of reqlock, which an error handler may have
// chosen.
func (x RPC[R]) refusalIn(in *inside, err error) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.refusals) == 0 || err == nil {
		return nil
	}
	code := int(x.codeOf(err))
	for link := err; link != nil; {
		if refusal := in.find(link); refusal != nil {
			if refusal.status == code {
				return refusal.err
			}
			return nil
		}
		var joined bool
		if link, joined = below(link); joined {
			return nil
		}
	}
	last := in.refusals[len(in.refusals)-1]
	if reason := x.reasonOf(last.err); reason != "" && x.reasonOf(err) == reason && code == last.status {
		return last.err
	}
	return nil
}

// find returns the refusal that an error itself is, or nil, for a caller that holds mu.
func (in *inside) find(err error) *refused {
	i := slices.IndexFunc(in.refusals, func(refusal refused) bool { return same(err, refusal.err) })
	if i < 0 {
		return nil
	}
	return &in.refusals[i]
}

// hasRefusal reports whether an error contains the refusal of a middleware inside.
func (in *inside) hasRefusal(err error) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return walk(err, func(link error) bool { return in.find(link) != nil })
}
