package conformance

import (
	"context"

	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/grpclock"
)

// grpcPayloadScenarios send other messages with the same key.
func grpcPayloadScenarios() []grpcScenario {
	return []grpcScenario{
		{"payload: another message after the first call", payloadAfter},
		{"payload: another message while the first call runs", payloadMeanwhile},
		{"payload: fields that the fingerprint ignores", payloadFields},
		{"payload: no fingerprint", payloadNone},
		{"payload: empty", payloadEmpty},
		{"payload: fields that the server does not know", payloadUnknown},
	}
}

// another is a message that differs from paid.
var another = &pb.SimpleRequest{ResponseStatus: &pb.EchoStatus{Message: "7 to grace"}}

func payloadAfter(b *grpcEnvironment) {
	p := b.serve(nil)
	first := p.wantFirst(p.pay(), 1)
	p.wantRefused(p.send(b.Context(), theKey, another), refused(core.ErrMismatch, 0))
	p.wantReplay(first, p.pay())
	p.wantRefused(p.send(b.Context(), theKey, another), refused(core.ErrMismatch, 0))
}

// The running call is not disturbed.
func payloadMeanwhile(b *grpcEnvironment) {
	var p *grpcClient
	p = b.serve(func(context.Context, *pb.SimpleRequest) error {
		p.wantRefused(p.send(b.Context(), theKey, another), refused(core.ErrMismatch, 0))
		return nil
	}, core.WithWait(patience)) // a mismatch does not wait
	first := p.wantFirst(p.pay(), 1)
	p.wantReplay(first, p.pay())
}

func payloadFields(b *grpcEnvironment) {
	amount := func(c *grpclock.Call) ([]byte, error) {
		m, _ := c.Message().(*pb.SimpleRequest)
		return protowire.AppendVarint(nil, uint64(m.GetResponseSize())), nil
	}
	p := b.serve(nil, grpclock.WithFingerprint(amount))
	first := p.wantFirst(p.send(b.Context(), theKey, &pb.SimpleRequest{ResponseSize: 7}), 1)
	p.wantReplay(first, p.send(b.Context(), theKey, &pb.SimpleRequest{ResponseSize: 7, FillUsername: true}))
	p.wantRefused(p.send(b.Context(), theKey, &pb.SimpleRequest{ResponseSize: 8}), refused(core.ErrMismatch, 0))
}

func payloadNone(b *grpcEnvironment) {
	p := b.serve(nil, grpclock.WithoutFingerprint())
	first := p.wantFirst(p.pay(), 1)
	p.wantReplay(first, p.send(b.Context(), theKey, another))
}

func payloadEmpty(b *grpcEnvironment) {
	p := b.serve(nil)
	first := p.wantFirst(p.send(b.Context(), theKey, &pb.SimpleRequest{}), 1)
	p.wantReplay(first, p.send(b.Context(), theKey, &pb.SimpleRequest{}))
	p.wantRefused(p.pay(), refused(core.ErrMismatch, 0))
}

// An unknown field, of a newer client, is a part of its message.
func payloadUnknown(b *grpcEnvironment) {
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
