package grpclock

import (
	"context"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/reqlock/reqlock/adapter"
)

// rpc returns how calls and their errors are read.
func rpc() adapter.RPC[*Call] {
	return adapter.RPC[*Call]{
		Method: (*Call).FullMethod,
		Header: func(c *Call, name string) []string {
			return metadata.ValueFromIncomingContext(c.ctx, strings.ToLower(name))
		},
		Fingerprint: calls().Fingerprint,
		Code: func(err error) (code uint32, ok bool) {
			own, ok := err.(interface{ GRPCStatus() *status.Status }) //nolint:errorlint // of the error itself
			if !ok {
				return 0, false
			}
			return uint32(own.GRPCStatus().Code()), true
		},
		Reason: func(err error) string {
			own, ok := err.(interface{ GRPCStatus() *status.Status }) //nolint:errorlint // as above
			if !ok {
				return ""
			}
			return reasonIn(own.GRPCStatus())
		},
		Refuse:  func(why, cause error) error { return newRefusal(StatusOf(why), cause) },
		Stored:  storedOf,
		Unknown: unknownOf,
	}
}

// run runs a handler as an attempt, and ends the attempt before the answer is sent.
func (c *config) run(entry adapter.Entry, x *adapter.RPCExchange[*Call], req any, handler grpc.UnaryHandler) (reply any, err error) {
	var recorder metadataRecorder
	err = x.Run(func(ctx context.Context) error {
		reply, err = handler(recorder.within(ctx), req)
		return err
	}, func(err error) (adapter.RPCAnswer, bool) { return recorder.answer(reply, err) })
	if refused := x.Refusal(); refused != nil {
		pushBack(entry, refused) // also if err has only its status
	} else {
		pushBack(entry, err)
	}
	return reply, err
}

// sent returns the status that gRPC sends for the error of a handler.
func sent(err error) *status.Status {
	if s, ok := status.FromError(err); ok {
		return s
	}
	return status.FromContextError(err)
}
