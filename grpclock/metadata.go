package grpclock

import (
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/reqlock/reqlock/internal/answer"
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
	kept := answer.Reply{Header: answer.Metadata(r.header), Trailer: answer.Metadata(r.trailer)}
	if err != nil {
		s := sent(err).Proto()
		kept.Code, kept.Text = uint32(s.GetCode()), s.GetMessage() //nolint:gosec // gRPC's codes are unsigned
		for _, detail := range s.GetDetails() {
			kept.Details = append(kept.Details, answer.Detail{URL: detail.GetTypeUrl(), Value: detail.GetValue()})
		}
		return answer.EncodeReply(nil, kept), true
	}
	m, ok := reply.(proto.Message)
	if !ok {
		return nil, false
	}
	kept.Type = string(m.ProtoReflect().Descriptor().FullName())
	kept.Message, err = proto.Marshal(m)
	return answer.EncodeReply(nil, kept), err == nil
}
