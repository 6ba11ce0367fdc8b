package conformance

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/grpclock"
)

// A grpcHandler runs in each call. A nil handler or error answers with the number of the run.
type grpcHandler func(ctx context.Context, m *pb.SimpleRequest) error

// A grpcClient is a client of a grpcEnvironment.
type grpcClient struct {
	b      *grpcEnvironment
	client pb.TestServiceClient
	addr   string
}

// serve serves with IdempotencyKey.
func (b *grpcEnvironment) serve(handle grpcHandler, opts ...grpclock.Option) *grpcClient {
	b.Helper()
	return b.serveOn(b.locks, handle, opts...)
}

// serveOn serves with another Locker, as another process does.
func (b *grpcEnvironment) serveOn(l *core.Locker, handle grpcHandler, opts ...grpclock.Option) *grpcClient {
	b.Helper()
	return b.serveBehind(handle, grpclock.IdempotentUnaryServerInterceptor(l, grpclock.IdempotencyKey(), opts...))
}

// serveBehind serves behind interceptors.
func (b *grpcEnvironment) serveBehind(handle grpcHandler, chain ...grpc.UnaryServerInterceptor) *grpcClient {
	b.Helper()
	s := listenGRPC(b.T, countingService{b: b, handle: handle}, unaryCall, grpc.ChainUnaryInterceptor(chain...)).(grpcServer)
	return &grpcClient{b, s.TestServiceClient, s.addr}
}

type countingService struct {
	pb.UnimplementedTestServiceServer
	b      *grpcEnvironment
	handle grpcHandler
}

func (s countingService) UnaryCall(ctx context.Context, m *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	reply := &pb.SimpleResponse{Username: fmt.Sprint(s.b.runs.Add(1))}
	if s.handle == nil {
		return reply, nil
	}
	if err := s.handle(ctx, m); err != nil {
		return nil, err
	}
	return reply, nil
}

// A grpcAnswer is what a client gets of a call.
type grpcAnswer struct {
	answer
	message         *pb.SimpleResponse
	err             error
	header, trailer metadata.MD
}

// send sends a call with the metadata idempotency-key, and other metadata.
func (p *grpcClient) send(ctx context.Context, key string, m *pb.SimpleRequest, others ...string) grpcAnswer {
	return p.call(metadata.AppendToOutgoingContext(ctx, append(others, "idempotency-key", key)...), m)
}

// call sends a call.
func (p *grpcClient) call(ctx context.Context, m *pb.SimpleRequest, opts ...grpc.CallOption) grpcAnswer {
	p.b.Helper()
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	var r grpcAnswer
	r.message, r.err = p.client.UnaryCall(ctx, m, append(opts, grpc.Header(&r.header), grpc.Trailer(&r.trailer))...)
	r.answer = answerOf(r.message.GetUsername(), r.err, r.header, r.trailer)
	for _, keyPrefix := range []string{theKey, p.b.ownTokens} {
		if strings.Contains(r.raw, keyPrefix) {
			p.b.Errorf("the answer contains a key or a token: %s", r.raw)
		}
	}
	r.header.Delete("content-type")
	r.trailer.Delete("content-type")
	return r
}

// retrying returns a client that resends a call that ends with the code.
func (p *grpcClient) retrying(code codes.Code) *grpcClient {
	p.b.Helper()
	policy := fmt.Sprintf(`{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 3, "initialBackoff": "0.01s",
		"maxBackoff": "0.01s", "backoffMultiplier": 1, "retryableStatusCodes": [%d]}}]}`, code)
	conn, err := grpc.NewClient(p.addr, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultServiceConfig(policy))
	if err != nil {
		p.b.Fatal(err)
	}
	p.b.Cleanup(func() { _ = conn.Close() })
	return &grpcClient{p.b, pb.NewTestServiceClient(conn), p.addr}
}

// incoming returns the values of a call's metadata.
func incoming(ctx context.Context, name string) []string {
	return metadata.ValueFromIncomingContext(ctx, name)
}

// pay sends the call of most rows.
func (p *grpcClient) pay() grpcAnswer {
	p.b.Helper()
	return p.send(p.b.Context(), theKey, paid)
}

var paid = &pb.SimpleRequest{ResponseStatus: &pb.EchoStatus{Message: "7 to ada"}}

// replayed reports whether an answer is marked as a replay.
func (r grpcAnswer) replayed() bool {
	return slices.Equal(r.header["idempotent-replayed"], []string{"true"})
}

// wantFirst fails the test unless the answer is that of run number, unmarked.
func (p *grpcClient) wantFirst(r grpcAnswer, number int) grpcAnswer {
	p.b.Helper()
	if r.text != fmt.Sprint(number) || r.replayed() {
		p.b.Errorf("not the answer of call %d: %+v", number, r)
	}
	return r
}

// wantReplay fails the test unless an answer is a replay of the first one.
func (p *grpcClient) wantReplay(first, r grpcAnswer) {
	p.b.Helper()
	header := r.header.Copy()
	header.Delete("idempotent-replayed")
	switch {
	case !r.replayed():
		p.b.Errorf("not marked as a replay: %+v", r)
	case !proto.Equal(first.message, r.message), !proto.Equal(status.Convert(first.err).Proto(), status.Convert(r.err).Proto()),
		!maps.EqualFunc(first.header, header, slices.Equal), !maps.EqualFunc(first.trailer, r.trailer, slices.Equal):
		p.b.Errorf("%+v\nis replayed as\n%+v", first, r)
	}
}

// wantRefused fails the test unless a call was refused with an error.
func (p *grpcClient) wantRefused(r grpcAnswer, want error) {
	p.b.Helper()
	if r.outcome != p.b.rowOf(want) || r.replayed() {
		p.b.Errorf("%+v, want %+v", r, p.b.rowOf(want))
	}
}
