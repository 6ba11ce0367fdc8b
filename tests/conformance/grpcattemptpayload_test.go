package conformance

import (
	"context"

	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/grpclock"
)

// grpcPayloadScenarios are about calls that come with a key by mistake.
func grpcPayloadScenarios() []grpcScenario {
	return []grpcScenario{
		{"payload: another message, after the end", payloadAfter},
		{"payload: another message, in flight", payloadMeanwhile},
		{"payload: fields that do not count", payloadFields},
		{"payload: none is compared", payloadNone},
		{"payload: empty", payloadEmpty},
		{"payload: fields that the program does not know", payloadUnknown},
	}
}

// another is a message that is not paid.
var another = &pb.SimpleRequest{ResponseStatus: &pb.EchoStatus{Message: "7 to grace"}}

func payloadAfter(b *teller) {
	p := b.serve(nil)
	first := p.wantFirst(p.pay(), 1)
	p.wantRefused(p.send(b.Context(), theKey, another), refused(core.ErrMismatch, 0))
	p.wantReplay(first, p.pay())
	p.wantRefused(p.send(b.Context(), theKey, another), refused(core.ErrMismatch, 0))
}

// The one that runs does not notice.
func payloadMeanwhile(b *teller) {
	var p *submission
	p = b.serve(func(context.Context, *pb.SimpleRequest) error {
		p.wantRefused(p.send(b.Context(), theKey, another), refused(core.ErrMismatch, 0))
		return nil
	}, core.WithWait(patience)) // a mismatch does not wait
	first := p.wantFirst(p.pay(), 1)
	p.wantReplay(first, p.pay())
}

func payloadFields(b *teller) {
	amount := func(c *grpclock.Call) ([]byte, error) {
		m, _ := c.Message().(*pb.SimpleRequest)
		return protowire.AppendVarint(nil, uint64(m.GetResponseSize())), nil
	}
	p := b.serve(nil, grpclock.WithFingerprint(amount))
	first := p.wantFirst(p.send(b.Context(), theKey, &pb.SimpleRequest{ResponseSize: 7}), 1)
	p.wantReplay(first, p.send(b.Context(), theKey, &pb.SimpleRequest{ResponseSize: 7, FillUsername: true}))
	p.wantRefused(p.send(b.Context(), theKey, &pb.SimpleRequest{ResponseSize: 8}), refused(core.ErrMismatch, 0))
}

func payloadNone(b *teller) {
	p := b.serve(nil, grpclock.WithoutFingerprint())
	first := p.wantFirst(p.pay(), 1)
	p.wantReplay(first, p.send(b.Context(), theKey, another))
}

func payloadEmpty(b *teller) {
	p := b.serve(nil)
	first := p.wantFirst(p.send(b.Context(), theKey, &pb.SimpleRequest{}), 1)
	p.wantReplay(first, p.send(b.Context(), theKey, &pb.SimpleRequest{}))
	p.wantRefused(p.pay(), refused(core.ErrMismatch, 0))
}

// A newer client's field is a part of its message.
func payloadUnknown(b *teller) {
	newer := func(text string) *pb.SimpleRequest {
		m := &pb.SimpleRequest{ResponseSize: 7}
		m.ProtoReflect().SetUnknown(protowire.AppendString(protowire.AppendTag(nil, 77, protowire.BytesType), text))
		return m
	}
	p := b.serve(nil)
	first := p.wantFirst(p.send(b.Context(), theKey, newer("a")), 1)
	p.wantReplay(first, p.send(b.Context(), theKey, newer("a")))
	p.wantRefused(p.send(b.Context(), theKey, newer("b")), refused(core.ErrMismatch, 0))
	p.wantRefused(p.send(b.Context(), theKey, &pb.SimpleRequest{ResponseSize: 7}), refused(core.ErrMismatch, 0))
}
