package grpclock

import (
	"context"
	"errors"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/reqlock/reqlock/adapter"
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
