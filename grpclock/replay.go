package grpclock

import (
	"context"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/adapter/protomsg"
	"github.com/reqlock/reqlock/core"
)

// replayedMark is the header metadata that marks a replay.
const replayedMark = "idempotent-replayed"

// replay answers a call with its stored answer.
func (c *config) replay(ctx context.Context, entry adapter.Entry, call *Call, answer adapter.RPCAnswer) (any, error) {
	var message proto.Message
	if answer.Code == 0 {
		var err error
		if message, err = protomsg.Reply(call.method, answer); err != nil {
			return nil, c.refuse(ctx, entry, call, &core.Error{Kind: core.ErrUnreplayable, Cause: err})
		}
	}
	mark := metadata.Pairs(replayedMark, "true")
	_ = grpc.SetHeader(ctx, metadata.Join(answer.Header, mark)) // fails if an interceptor has sent the header
	_ = grpc.SetTrailer(ctx, answer.Trailer)
	if answer.Code != 0 {
		return nil, statusOfReply(answer).Err()
	}
	return message, nil
}

// statusOfReply returns the status of an answer with another code than OK.
func statusOfReply(answer adapter.RPCAnswer) *status.Status {
	s := &spb.Status{Code: int32(answer.Code), Message: answer.Text} //nolint:gosec // converted from int32 when it was stored
	for _, detail := range answer.Details {
		s.Details = append(s.Details, &anypb.Any{TypeUrl: detail.Type, Value: detail.Value})
	}
	return status.FromProto(s)
}
