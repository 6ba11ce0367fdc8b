package grpclock

import (
	"context"
	"errors"
)

// A Call is what key functions see of a call: unary, or the beginning of a
// stream.
type Call struct {
	ctx     context.Context
	method  string
	message any
	opening bool // of a stream: a message may still come
	asked   bool // the message was asked for while opening
}

// NewCall returns a call with its one message, or a stream with its first one;
// nil is a stream that ends without. Interceptors do it; it is there for tests
// of key functions.
func NewCall(ctx context.Context, fullMethod string, message any) *Call {
	return &Call{ctx: ctx, method: fullMethod, message: message}
}

// newOpening returns a stream that has just opened.
func newOpening(ctx context.Context, fullMethod string) *Call {
	return &Call{ctx: ctx, method: fullMethod, opening: true}
}

// Context returns the context of the call, as the interceptors before this one
// have made it. It carries the metadata, the peer and the deadline.
func (c *Call) Context() context.Context { return c.ctx }

// FullMethod returns the method as gRPC writes it: "/pkg.Service/Method". It
// is what the generated constants pb.Service_Method_FullMethodName hold.
func (c *Call) FullMethod() string { return c.method }

// Message returns the message of a unary call, or the first one of a stream.
//
// It is nil while a stream has none, and in a stream that ends without one. A
// key function that was given nil while the stream opens is called again when
// the first message is there; what it returned before does not count. So it
// need not know which of the two it is, as long as it bears nil:
//
//	m, _ := c.Message().(*pb.TransferRequest)
//	return m.GetDryRun() // getters bear nil too
func (c *Call) Message() any {
	c.asked = c.asked || c.opening
	return c.message
}

// errNoMessage says that the key cannot be told before the first message.
var errNoMessage = errors.New("reqlock: the stream has no message yet")

// untilAsked returns the key function that fails where key asks for a message
// that may still come, whatever key makes of its absence.
func untilAsked(key KeyFunc) KeyFunc {
	return func(c *Call) (string, error) {
		k, err := key(c)
		if c.asked {
			return "", errNoMessage
		}
		return k, err
	}
}
