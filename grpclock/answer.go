package grpclock

import (
	"context"
	"errors"
	"sync"

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

// NewAnswer returns an answer for core.Answered, with which an operator ends the unknown outcome
// of a call. Copies of the call get it as if a handler had returned reply and err: the message
// if err is nil, and otherwise the status of err. It has no metadata.
//
// The error says that there is neither a message nor an err, or that the message cannot be
// encoded.
func NewAnswer(reply proto.Message, err error) (core.Answer, error) {
	if err == nil && reply == nil {
		return core.Answer{}, errors.New("reqlock: grpclock: NewAnswer: there is neither a message nor an error")
	}
	answer, ok := new(metadataRecorder).answer(reply, err)
	if !ok {
		return core.Answer{}, errors.New("reqlock: grpclock: NewAnswer: the message cannot be encoded")
	}
	return adapter.NewRPCAnswer(answer), nil
}

// A metadataRecorder is the transport stream of a call. It passes header and trailer
// metadata on to gRPC's stream, and records what that stream accepts.
type metadataRecorder struct {
	grpc.ServerTransportStream // nil in a test without a server
	mu                         sync.Mutex
	header, trailer            metadata.MD
}

// SetHeader sets metadata of the header.
func (r *metadataRecorder) SetHeader(md metadata.MD) error {
	return r.record(&r.header, md, r.ServerTransportStream.SetHeader)
}

// SendHeader sends the header at once. It may precede the commit, since it contains
// neither the message nor the status.
func (r *metadataRecorder) SendHeader(md metadata.MD) error {
	return r.record(&r.header, md, r.ServerTransportStream.SendHeader)
}

// SetTrailer sets metadata of the trailer.
func (r *metadataRecorder) SetTrailer(md metadata.MD) error {
	return r.record(&r.trailer, md, r.ServerTransportStream.SetTrailer)
}

// record passes metadata on, and adds it to the recorded metadata.
func (r *metadataRecorder) record(rest *metadata.MD, md metadata.MD, give func(metadata.MD) error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := give(md); err != nil {
		return err
	}
	*rest = metadata.Join(*rest, md)
	return nil
}

// within returns a context in which grpc.SetHeader, grpc.SendHeader and grpc.SetTrailer are recorded.
func (r *metadataRecorder) within(ctx context.Context) context.Context {
	if r.ServerTransportStream = grpc.ServerTransportStreamFromContext(ctx); r.ServerTransportStream == nil {
		return ctx
	}
	return grpc.NewContextWithServerTransportStream(ctx, r)
}

// answer returns the answer of a handler, with the recorded metadata. ok is false if it cannot be
// replayed.
func (r *metadataRecorder) answer(reply any, err error) (a adapter.RPCAnswer, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a = adapter.RPCAnswer{Header: r.header, Trailer: r.trailer}
	if err != nil {
		s := sent(err).Proto()
		a.Code, a.Text = uint32(s.GetCode()), s.GetMessage() //nolint:gosec // gRPC's codes are unsigned
		for _, detail := range s.GetDetails() {
			a.Details = append(a.Details, adapter.RPCDetail{Type: detail.GetTypeUrl(), Value: detail.GetValue()})
		}
		return a, true
	}
	m, ok := reply.(proto.Message)
	if !ok {
		return a, false
	}
	a.Type = string(m.ProtoReflect().Descriptor().FullName())
	a.Message, err = proto.Marshal(m)
	return a, err == nil
}

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
