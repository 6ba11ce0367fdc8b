package grpclock

import (
	"context"
	"errors"
	"sync/atomic"

	"google.golang.org/grpc"
)

// An exchange is one run of the handler of an idempotent call. It is the context of that
// run, so that the interceptors behind find it.
type exchange struct {
	context.Context
	metadata metadataRecorder
	outer    *exchange // around this one, or nil
	pass     *pass     // of its call in that one

	// What the interceptors of reqlock inside have done: see pass.
	last   atomic.Pointer[refusal] // the last refusal
	inside atomic.Int64            // calls that have entered an interceptor, and have not left it
	ran    atomic.Bool             // the handler may have had its effect
	late   atomic.Bool             // there was a refusal after that, or beside a call that may have run
	broken atomic.Bool             // a call has panicked, or lost its lock, or an attempt inside is unknown
}

// exchangeKey is the key of an exchange in its context.
type exchangeKey struct{}

// newExchange returns an exchange of a call with that pass, and the context of its handler. In this
// context grpc.SetHeader, grpc.SendHeader and grpc.SetTrailer are recorded.
func newExchange(ctx context.Context, p *pass) (context.Context, *exchange) {
	x := &exchange{Context: ctx, outer: exchangeOf(ctx), pass: p}
	x.metadata.ServerTransportStream = grpc.ServerTransportStreamFromContext(ctx)
	if x.metadata.ServerTransportStream == nil {
		return x, x
	}
	return grpc.NewContextWithServerTransportStream(x, &x.metadata), x
}

// Value returns the exchange, its pass, or a value of the context of the lease.
func (x *exchange) Value(key any) any {
	switch key {
	case exchangeKey{}:
		return x
	case passKey{}:
		return x.pass
	}
	return x.Context.Value(key)
}

// exchangeOf returns the innermost exchange of a context, or nil.
func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// noteRefusal records that an interceptor has refused a call.
func noteRefusal(call *Call, r *refusal) {
	r.inside = exchangeOf(call.ctx)
	for p := call.pass.outer; p != nil; p = p.outer {
		p.refused.Store(true)
	}
	for x := r.inside; x != nil; x = x.outer {
		x.last.Store(r)
		if x.ran.Load() || x.inside.Load() > call.pass.around(x) {
			x.late.Store(true)
		}
	}
}

// refusalIn returns the refusal of an interceptor inside that an error is, or nil. An error is a
// refusal if it wraps only that one, and is sent with its code, or if it has the code and the reason
// of the last one. A refusal that is joined with another error does not count, because that may be
// the handler's, and neither does a status without an ErrorInfo of reqlock, which an error handler
// may have chosen.
func (x *exchange) refusalIn(err error) *refusal {
	last := x.last.Load()
	if last == nil || err == nil {
		return nil
	}
	code := codeOf(err)
	for link := err; link != nil; {
		if r, is := link.(*refusal); is { //nolint:errorlint // the chain is walked here
			if r.isInside(x) && code == r.status.Code() {
				return r
			}
			return nil
		}
		var joined bool
		if link, joined = below(link); joined {
			return nil
		}
	}
	if reason := reasonIn(last.status); reason != "" && reasonIn(sent(err)) == reason && code == last.status.Code() {
		return last
	}
	return nil
}

// below returns the error that err wraps, or nil, and whether err wraps several ones.
func below(err error) (wrapped error, joined bool) {
	switch err := err.(type) { //nolint:errorlint // the chain is walked here
	case interface{ Unwrap() error }:
		return err.Unwrap(), false
	case interface{ Unwrap() []error }:
		all := err.Unwrap()
		if len(all) != 1 {
			return nil, true
		}
		return all[0], false
	}
	return nil, false
}

// hasRefusal reports whether an error contains the refusal of an interceptor inside.
func (x *exchange) hasRefusal(err error) bool {
	var r *refusal
	return errors.As(err, &r) && r.isInside(x)
}

// runsOn reports whether the call still runs behind an interceptor, or waits for its lock, in
// another goroutine, as behind a timeout.
func (x *exchange) runsOn() bool { return x.inside.Load() > 0 }

// isInside reports whether the refusal came from an interceptor in the exchange.
func (r *refusal) isInside(x *exchange) bool {
	for inside := r.inside; inside != nil; inside = inside.outer {
		if inside == x {
			return true
		}
	}
	return false
}

// mayHaveRun reports whether the handler may have run behind an interceptor inside, or still runs
// or waits there.
func (x *exchange) mayHaveRun() bool { return x.ran.Load() || x.runsOn() }
