package grpclock

import (
	"context"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/reqlock/reqlock/internal/adapter/record"
)

// notes is the transport stream of a call, which notes what is set or sent on
// it. All of it goes on to the stream as always, and what that refuses is not
// noted.
type notes struct {
	grpc.ServerTransportStream // nil where there is none, as in tests
	mu                         sync.Mutex
	header, trailer            metadata.MD
}

// takeNotes returns the context in which grpc.SetHeader, grpc.SendHeader and
// grpc.SetTrailer leave notes.
func takeNotes(ctx context.Context) (context.Context, *notes) {
	n := &notes{ServerTransportStream: grpc.ServerTransportStreamFromContext(ctx)}
	if n.ServerTransportStream == nil {
		return ctx, n
	}
	return grpc.NewContextWithServerTransportStream(ctx, n), n
}

// SetHeader sets metadata of the header.
func (n *notes) SetHeader(md metadata.MD) error {
	return n.note(&n.header, md, n.ServerTransportStream.SetHeader)
}

// SendHeader sends the header, which needs no commit: it is neither the message
// nor the status.
func (n *notes) SendHeader(md metadata.MD) error {
	return n.note(&n.header, md, n.ServerTransportStream.SendHeader)
}

// SetTrailer sets metadata of the trailer.
func (n *notes) SetTrailer(md metadata.MD) error {
	return n.note(&n.trailer, md, n.ServerTransportStream.SetTrailer)
}

// note gives metadata to the stream, and adds it to the rest.
func (n *notes) note(rest *metadata.MD, md metadata.MD, give func(metadata.MD) error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := give(md); err != nil {
		return err
	}
	*rest = metadata.Join(*rest, md)
	return nil
}

// write writes down the answer of a handler, with the metadata that was noted;
// false if it cannot be read again.
func (n *notes) write(reply any, err error) (written []byte, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	answer := record.Reply{Header: record.Metadata(n.header), Trailer: record.Metadata(n.trailer)}
	if err != nil {
		s := sent(err).Proto()
		answer.Code, answer.Text = uint32(s.GetCode()), s.GetMessage() //nolint:gosec // gRPC's codes are unsigned
		for _, detail := range s.GetDetails() {
			answer.Details = append(answer.Details, record.Detail{URL: detail.GetTypeUrl(), Value: detail.GetValue()})
		}
		return record.EncodeReply(nil, answer), true
	}
	m, ok := reply.(proto.Message)
	if !ok {
		return nil, false
	}
	answer.Type = string(m.ProtoReflect().Descriptor().FullName())
	answer.Message, err = proto.Marshal(m)
	return record.EncodeReply(nil, answer), err == nil
}
