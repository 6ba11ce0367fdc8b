package grpclock

import (
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/reqlock/reqlock/internal/adapter/record"
)

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

// encode returns the record of a handler's answer, with the recorded metadata. ok is
// false if the answer cannot be replayed.
func (r *metadataRecorder) encode(reply any, err error) (encoded []byte, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	answer := record.Reply{Header: record.Metadata(r.header), Trailer: record.Metadata(r.trailer)}
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
