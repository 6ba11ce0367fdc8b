package grpclock

import (
	"context"
	"errors"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// An exchange is one run of the handler of an idempotent call. It is the context of that
// run, so that the interceptors behind find it.
type exchange struct {
	context.Context
	metadata metadataRecorder
	outer    *exchange               // around this one, or nil
	last     atomic.Pointer[refusal] // the last refusal by an interceptor inside
	running  atomic.Int64            // calls that an interceptor inside has let run
	ran      atomic.Bool             // the handler may have had its effect
	late     atomic.Bool             // there was a refusal after that
}

// exchangeKey is the key of an exchange in its context.
type exchangeKey struct{}

// newExchange returns an exchange, and the context of its handler. In this context
// grpc.SetHeader, grpc.SendHeader and grpc.SetTrailer are recorded.
func newExchange(ctx context.Context) (context.Context, *exchange) {
	x := &exchange{Context: ctx, outer: exchangeOf(ctx)}
	x.metadata.ServerTransportStream = grpc.ServerTransportStreamFromContext(ctx)
	if x.metadata.ServerTransportStream == nil {
		return x, x
	}
	return grpc.NewContextWithServerTransportStream(x, &x.metadata), x
}

// Value returns the exchange, or a value of the context of the lease.
func (x *exchange) Value(key any) any {
	if key == (exchangeKey{}) {
		return x
	}
	return x.Context.Value(key)
}

// exchangeOf returns the innermost exchange of a context, or nil.
func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// noteRefusal records that an interceptor has refused the call of a context.
func noteRefusal(ctx context.Context, r *refusal) {
	r.inside = exchangeOf(ctx)
	for x := r.inside; x != nil; x = x.outer {
		x.last.Store(r)
		if x.ran.Load() {
			x.late.Store(true)
		}
	}
}

// pass lets a call run behind an interceptor. Unless the call ends with a refusal of an
// interceptor inside, its handler may have had its effect.
func pass(outside, ctx context.Context, req any, handler grpc.UnaryHandler) (reply any, err error) {
	x := exchangeOf(outside)
	if x == nil {
		return handler(ctx, req)
	}
	ran := true
	x.begin()
	defer func() { x.leave(ran) }()
	reply, err = handler(ctx, req)
	ran = !x.isRefusal(err)
	return reply, err
}

// begin counts a call that an interceptor inside lets run. It does nothing on nil.
func (x *exchange) begin() *exchange {
	if x != nil {
		x.running.Add(1)
	}
	return x
}

// leave counts its end. ran says that the handler may have had its effect. It does nothing on
// nil.
func (x *exchange) leave(ran bool) {
	if x == nil {
		return
	}
	if ran {
		x.ran.Store(true)
	}
	x.running.Add(-1)
}

// isRefusal reports whether an error is the refusal of an interceptor inside, or wraps only
// that, or has the same status. A refusal that is joined with another error does not count,
// because that may be the handler's.
func (x *exchange) isRefusal(err error) bool {
	last := x.last.Load()
	if last == nil || err == nil {
		return false
	}
	for link := err; link != nil; {
		if r, is := link.(*refusal); is { //nolint:errorlint // the chain is walked here
			return r.isInside(x)
		}
		wrapper, wraps := link.(interface{ Unwrap() error })
		if !wraps {
			break
		}
		link = wrapper.Unwrap()
	}
	_, joined := err.(interface{ Unwrap() []error })
	return !joined && proto.Equal(sent(err).Proto(), last.status.Proto())
}

// hasRefusal reports whether an error contains the refusal of an interceptor inside. It is false
// on nil.
func (x *exchange) hasRefusal(err error) bool {
	var r *refusal
	return x != nil && errors.As(err, &r) && r.isInside(x)
}

// mayRunOn reports whether the handler still runs in another goroutine, as behind a timeout, or
// has run before an interceptor refused another try.
func (x *exchange) mayRunOn() bool { return x.running.Load() > 0 || x.late.Load() }

// isInside reports whether the refusal came from an interceptor in the exchange.
func (r *refusal) isInside(x *exchange) bool {
	for inside := r.inside; inside != nil; inside = inside.outer {
		if inside == x {
			return true
		}
	}
	return false
}

// mayHaveRun reports whether the handler may have run behind an interceptor inside, or may
// still run there.
func (x *exchange) mayHaveRun() bool { return x.ran.Load() || x.running.Load() > 0 }
