package grpclock_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/reqlock/reqlock/core"
	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/grpclock"
)

// idempotent is a server option with this interceptor.
func idempotent(l *core.Locker, key grpclock.Key, opts ...core.Option) grpc.ServerOption {
	return grpc.ChainUnaryInterceptor(grpclock.IdempotentUnaryServerInterceptor(l, key, opts...))
}

// marked returns a context for calls with an idempotency key.
func marked(t *testing.T, key string) context.Context {
	t.Helper()
	return metadata.AppendToOutgoingContext(within(t), "idempotency-key", key)
}

// A reply is what a client gets: the bytes of the message, the status with its
// details, and the metadata.
type reply struct {
	message         []byte
	status          *status.Status
	header, trailer map[string][]string // except content-type, which gRPC sets
}

// asBytes is a codec that leaves replies as they come.
type asBytes struct{}

func (asBytes) Name() string { return "proto" }

func (asBytes) Marshal(v any) ([]byte, error) { return proto.Marshal(v.(proto.Message)) }

func (asBytes) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = bytes.Clone(data)
	return nil
}

// ask calls Transfer.
func ask(ctx context.Context, conn *grpc.ClientConn, m proto.Message) reply {
	var message []byte
	var header, trailer metadata.MD
	err := conn.Invoke(ctx, pb.Bank_Transfer_FullMethodName, m, &message,
		grpc.ForceCodec(asBytes{}), grpc.Header(&header), grpc.Trailer(&trailer))
	header.Delete("content-type")
	trailer.Delete("content-type") // of a reply that is a trailer alone
	return reply{message, status.Convert(err), header, trailer}
}

// replayed reports whether a reply has the mark of a replay.
func (r reply) replayed() bool {
	return slices.Equal(r.header["idempotent-replayed"], []string{"true"})
}

// checkReplay compares a replay with the first reply, byte for byte.
func checkReplay(t *testing.T, first, later reply) {
	t.Helper()
	if first.replayed() || !later.replayed() {
		t.Errorf("marked as a replay: the first %v, the later one %v", first.replayed(), later.replayed())
	}
	later.header = maps.Clone(later.header)
	delete(later.header, "idempotent-replayed")
	same := func(a, b map[string][]string) bool { return maps.EqualFunc(a, b, slices.Equal) }
	if !bytes.Equal(first.message, later.message) || !proto.Equal(first.status.Proto(), later.status.Proto()) ||
		!same(first.header, later.header) || !same(first.trailer, later.trailer) {
		t.Errorf("%s\nis replayed as\n%s", first, later)
	}
}

// String shows all of a reply.
func (r reply) String() string {
	return fmt.Sprintf("message %x, status %v, header %v, trailer %v", r.message, r.status.Proto(), r.header, r.trailer)
}

// counted is a bank that counts the transfers, and replies with their number.
func counted(n *atomic.Int32, decide func(context.Context, *pb.TransferRequest) error) *bank {
	return &bank{reply: func(ctx context.Context, m *pb.TransferRequest) (*pb.TransferReply, error) {
		reply := &pb.TransferReply{Cents: int64(n.Add(1))}
		if decide == nil {
			return reply, nil
		}
		return reply, decide(ctx, m)
	}}
}

// wantRuns compares how often the handler has run.
func wantRuns(t *testing.T, n *atomic.Int32, want int32) {
	t.Helper()
	if n.Load() != want {
		t.Errorf("the handler has run %d times, not %d", n.Load(), want)
	}
}

// wantOK fails the test unless a reply is a success.
func wantOK(t *testing.T, r reply) {
	t.Helper()
	if r.status.Code() != codes.OK {
		t.Errorf("%s", r)
	}
}
