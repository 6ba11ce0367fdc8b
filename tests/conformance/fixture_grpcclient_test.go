package conformance

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// A grpcEnvironment serves one row. Each run of the method has a number, which is its answer.
type grpcEnvironment struct {
	*environment
	runs atomic.Int32
}

// process returns the Locker of another process, with its own connections.
func (b *grpcEnvironment) process(opts ...core.Option) (*core.Locker, *redistest.Proxy) {
	b.Helper()
	proxy := b.redis.Proxy(b.T)
	locks := core.Must(core.New(b.connect(proxy), busyMachine(append(opts, core.WithPrefix(b.prefix))...)...))
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		proxy.Refuse(false)
		if err := locks.Close(ctx); err != nil {
			b.Errorf("Close: %v", err)
		}
	})
	return locks, proxy
}

// wantRuns fails the test unless this many calls have run.
func (b *grpcEnvironment) wantRuns(want int32) {
	b.Helper()
	if got := b.runs.Load(); got != want {
		b.Errorf("%d calls have run, not %d", got, want)
	}
}

// A grpcHandler runs in each call. A nil handler or error answers with the number of the run.
type grpcHandler func(ctx context.Context, m *pb.SimpleRequest) error

// A grpcClient is a client of a grpcEnvironment.
type grpcClient struct {
	b      *grpcEnvironment
	client pb.TestServiceClient
}

// serve serves with IdempotencyKey.
func (b *grpcEnvironment) serve(handle grpcHandler, opts ...core.Option) *grpcClient {
	b.Helper()
	return b.serveOn(b.locks, handle, opts...)
}

// serveOn serves with another Locker, as another process does.
func (b *grpcEnvironment) serveOn(l *core.Locker, handle grpcHandler, opts ...core.Option) *grpcClient {
	b.Helper()
	return b.serveBehind(handle, grpclock.IdempotentUnaryServerInterceptor(l, grpclock.IdempotencyKey(), opts...))
}

// serveBehind serves behind interceptors.
func (b *grpcEnvironment) serveBehind(handle grpcHandler, chain ...grpc.UnaryServerInterceptor) *grpcClient {
	b.Helper()
	s := listenGRPC(b.T, countingService{b: b, handle: handle}, unaryCall, grpc.ChainUnaryInterceptor(chain...)).(grpcServer)
	return &grpcClient{b, s.TestServiceClient}
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

// paid is the message of most rows, and another differs from it.
var (
	paid    = &pb.SimpleRequest{ResponseStatus: &pb.EchoStatus{Message: "7 to ada"}}
	another = &pb.SimpleRequest{ResponseStatus: &pb.EchoStatus{Message: "7 to grace"}}
)

// pay sends the call of most rows.
func (p *grpcClient) pay() grpcAnswer {
	p.b.Helper()
	return p.send(p.b.Context(), theKey, paid)
}

// send sends a call with the metadata idempotency-key.
func (p *grpcClient) send(ctx context.Context, key string, m *pb.SimpleRequest) grpcAnswer {
	return p.call(metadata.AppendToOutgoingContext(ctx, "idempotency-key", key), m)
}

// call sends a call.
func (p *grpcClient) call(ctx context.Context, m *pb.SimpleRequest) grpcAnswer {
	p.b.Helper()
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	var r grpcAnswer
	r.message, r.err = p.client.UnaryCall(ctx, m, grpc.Header(&r.header), grpc.Trailer(&r.trailer))
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

// manyCopies sends n copies at once and returns their answers.
func (p *grpcClient) manyCopies(n int) []grpcAnswer {
	answers := make([]grpcAnswer, n)
	var sent sync.WaitGroup
	for i := range answers {
		sent.Go(func() { answers[i] = p.pay() })
	}
	sent.Wait()
	return answers
}

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

// refusedBy returns a status of the application.
func refusedBy(code codes.Code) error { return status.Error(code, "no") }
