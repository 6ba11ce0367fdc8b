package grpclock

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc"
)

// An exchange is one run of the handler of an idempotent call. It is the context of that
// run, so that the interceptors behind find it.
type exchange struct {
	context.Context
	metadata metadataRecorder
	refused  atomic.Pointer[refusal] // the last one, unless the call ran after it
}

// exchangeKey is the key of an exchange in its context.
type exchangeKey struct{}

// newExchange returns an exchange, and the context of its handler. In this context
// grpc.SetHeader, grpc.SendHeader and grpc.SetTrailer are recorded.
func newExchange(ctx context.Context) (context.Context, *exchange) {
	x := &exchange{Context: ctx}
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
	if x := exchangeOf(ctx); x != nil {
		x.refused.Store(r)
	}
}

// noteRun records that an interceptor lets the call of a context run. If there was a refusal
// before, an interceptor in between has tried again, and the handler may have run.
func noteRun(ctx context.Context) {
	if x := exchangeOf(ctx); x != nil {
		x.refused.Store(nil)
	}
}

// endsRefused reports whether the call ends with a refusal, after which nothing has run: err
// is the last refusal, or it wraps no other error than that one. A refusal that is joined
// with another error does not count, because that may be the handler's. The exchange around
// this one, which outer belongs to, ends with the same refusal.
func (x *exchange) endsRefused(outer context.Context, err error) bool {
	last := x.refused.Load()
	if last == nil {
		return false
	}
	for err != nil {
		if found, is := err.(*refusal); is && found == last { //nolint:errorlint // the chain is walked here
			noteRefusal(outer, last)
			return true
		}
		wrapper, wraps := err.(interface{ Unwrap() error })
		if !wraps {
			return false
		}
		err = wrapper.Unwrap()
	}
	return false
}
