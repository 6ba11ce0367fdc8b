package grpclock

import (
	"context"

	"github.com/reqlock/reqlock/adapter/protomsg"
)

// A Call is what a Key reads: a unary call, or the beginning of a stream.
type Call struct {
	ctx          context.Context
	method       string
	message      any
	opening      bool // a stream that may still receive a first message
	needsMessage bool // Message was called while opening
}

// NewCall returns a unary call with its message, or a stream with its first message;
// nil is the message of a stream that ends without one. Use it in tests of
// keys; interceptors create the Call by themselves.
func NewCall(ctx context.Context, fullMethod string, message any) *Call {
	return &Call{ctx: ctx, method: fullMethod, message: message}
}

// newOpening returns a stream that has just opened.
func newOpening(ctx context.Context, fullMethod string) *Call {
	return &Call{ctx: ctx, method: fullMethod, opening: true}
}

// Context returns the context of the call, from the interceptors before this one. It
// carries the metadata, the peer and the deadline.
func (c *Call) Context() context.Context {
	return c.ctx
}

// FullMethod returns the method in the form of gRPC, "/pkg.Service/Method", as in the
// generated constants pb.Service_Method_FullMethodName.
func (c *Call) FullMethod() string {
	return c.method
}

// Message returns the message of a unary call, or the first one of a stream.
//
// It is nil before a stream has received a message, and for a stream that ends
// without one. If a key gets nil while the stream opens, it is read again with the
// first message, and its first result is ignored. So the function of a core.KeyOf need
// not distinguish the two cases, but it must accept nil:
//
//	m, _ := c.Message().(*pb.TransferRequest)
//	return m.GetDryRun() // getters accept nil, too
func (c *Call) Message() any {
	c.needsMessage = c.needsMessage || c.opening
	return c.message
}

// String names the method. The metadata and the message do not get into logs by accident.
func (c *Call) String() string { return "grpclock.Call(" + c.method + ")" }

// GoString returns the same as String, for %#v.
func (c *Call) GoString() string { return c.String() }

// calls returns how the keys read calls.
func calls() protomsg.Calls[*Call] {
	return protomsg.Calls[*Call]{Method: (*Call).FullMethod, Message: (*Call).Message}
}
