package connectlock

import (
	"context"
	"net/http"

	"connectrpc.com/connect"

	"github.com/reqlock/reqlock/adapter/protomsg"
)

// A Call is what a Key reads: a unary call, or the beginning of a stream.
type Call struct {
	ctx          context.Context
	spec         connect.Spec
	peer         connect.Peer
	header       http.Header
	message      any
	opening      bool // a stream that may still receive a first message
	needsMessage bool // Message was called while opening
}

// NewCall returns a unary call with its message, or a stream with its first message; nil is the
// message of a stream that ends without one. Use it in tests of keys; interceptors create the Call by
// themselves.
func NewCall(ctx context.Context, spec connect.Spec, peer connect.Peer, header http.Header, message any) *Call {
	return &Call{ctx: ctx, spec: spec, peer: peer, header: header, message: message}
}

// Context returns the context of the call, from the interceptors before this one.
func (c *Call) Context() context.Context { return c.ctx }

// Spec returns the description of the method. Its Procedure is as in the generated constants
// bankv1connect.BankTransferProcedure.
func (c *Call) Spec() connect.Spec { return c.spec }

// Peer returns the client's address, and the protocol of the call.
func (c *Call) Peer() connect.Peer { return c.peer }

// Header returns the headers that the client has sent. Do not change them.
func (c *Call) Header() http.Header { return c.header }

// Message returns the message of a unary call, or the first one of a stream.
//
// It is nil before a stream has received a message, and for a stream that ends without one. If a key
// gets nil while the stream opens, it is read again with the first message, and its first result is
// ignored. So the function of a core.KeyOf need not distinguish the two cases, but it must accept nil:
//
//	m, _ := c.Message().(*bankv1.TransferRequest)
//	return m.GetDryRun() // getters accept nil, too
func (c *Call) Message() any {
	c.needsMessage = c.needsMessage || c.opening
	return c.message
}

// String names the method. The headers and the message do not get into logs by accident.
func (c *Call) String() string { return "connectlock.Call(" + c.spec.Procedure + ")" }

// GoString returns the same as String, for %#v.
func (c *Call) GoString() string { return c.String() }

// IsRead reports whether the .proto file says that the method of a call only reads, by
// idempotency_level = NO_SIDE_EFFECTS. It is for core.Key.SharedWhen.
func IsRead(c *Call) bool { return c.spec.IdempotencyLevel == connect.IdempotencyNoSideEffects }

// procedure returns the full method of a call, "/pkg.Service/Method".
func (c *Call) procedure() string { return c.spec.Procedure }

// calls returns how the keys read calls.
func calls() protomsg.Calls[*Call] {
	return protomsg.Calls[*Call]{Method: (*Call).procedure, Message: (*Call).Message}
}
