package grpclock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/reqlock/reqlock/core"
	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A chain is a server's interceptors, unary and stream alike.
type chain struct {
	unary  []grpc.UnaryServerInterceptor
	stream []grpc.StreamServerInterceptor
}

func (c *chain) add(unary grpc.UnaryServerInterceptor, stream grpc.StreamServerInterceptor) {
	c.unary = append(c.unary, unary)
	c.stream = append(c.stream, stream)
}

func (c *chain) lock(l *core.Locker, key grpclock.Key, opts ...core.Option) {
	c.add(grpclock.UnaryServerInterceptor(l, key, opts...), grpclock.StreamServerInterceptor(l, key, opts...))
}

// around adds a function that calls the inner interceptors.
func (c *chain) around(f func(inside func() error) error) {
	c.add(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (reply any, err error) {
		err = f(func() error {
			reply, err = next(ctx, req)
			return err
		})
		return reply, err
	}, func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
		return f(func() error { return next(srv, ss) })
	})
}

func (c *chain) options() []grpc.ServerOption {
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(c.unary...), grpc.ChainStreamInterceptor(c.stream...)}
}

// calls are the kinds of locked calls: a unary call, a stream that takes its lock
// when it opens, and a stream that takes its lock with the first message.
var calls = map[string]struct {
	key  grpclock.Key
	bank func(run func(context.Context) error) *bank
	call func(context.Context, pb.BankClient) error
}{
	"unary": {
		key: grpclock.Field[*pb.TransferRequest]("account.id"),
		bank: func(run func(context.Context) error) *bank {
			return &bank{transfer: func(ctx context.Context, _ *pb.TransferRequest) error { return run(ctx) }}
		},
		call: func(ctx context.Context, client pb.BankClient) error {
			_, err := client.Transfer(ctx, transferOf(theKey))
			return err
		},
	},
	"stream, key at the beginning": {
		key:  literal,
		bank: batchBank,
		call: batchCall,
	},
	"stream, key in the message": {
		key:  grpclock.Field[*pb.TransferRequest]("account.id"),
		bank: batchBank,
		call: batchCall,
	},
}

func batchBank(run func(context.Context) error) *bank {
	return &bank{batch: func(s grpc.BidiStreamingServer[pb.TransferRequest, pb.TransferReply]) error {
		early := s.Context()
		if _, err := s.Recv(); err != nil {
			return err
		}
		if err := s.Send(&pb.TransferReply{}); err != nil {
			return err
		}
		return run(early)
	}}
}

// batchCall returns the end of the stream.
func batchCall(ctx context.Context, client pb.BankClient) error {
	stream, err := client.Batch(ctx)
	if err != nil {
		return err
	}
	if err := stream.Send(transferOf(theKey)); atEnd(err) != nil { // Recv says why it has ended
		return err
	}
	if _, err := stream.Recv(); err != nil {
		return err
	}
	_, err = stream.Recv()
	return atEnd(err)
}

// forEachCall runs a test with each kind of call.
func forEachCall(t *testing.T, test func(t *testing.T, key grpclock.Key,
	bank func(func(context.Context) error) *bank, call func(context.Context, pb.BankClient) error),
) {
	t.Helper()
	for name, way := range calls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, way.key, way.bank, way.call)
		})
	}
}

// A lost lock ends the context of a stream that took its lock with the first message,
// also if the handler got the context before. tests/conformance has the other calls.
func TestLostLeaseOfLateStream(t *testing.T) {
	t.Parallel()
	locks, rdb := adaptertest.Locker(t, core.WithTTL(time.Second), core.WithWait(20*time.Second))
	client := serve(t, batchBank(func(early context.Context) error {
		if lease, _ := core.LeaseFromContext(early); lease.Key() != theKey {
			t.Errorf("lease of %q", lease.Key())
		}
		derived, cancel := context.WithCancel(early)
		defer cancel()
		redistest.LoseAnywhere(t, rdb, "the context ends", early.Done(), "reqlock:"+theKey)
		for _, ctx := range []context.Context{early, derived} {
			suite.ReceiveAnywhere(t, "the context ends", ctx.Done())
			if cause := context.Cause(ctx); !errors.Is(cause, core.ErrLost) {
				t.Errorf("cause %v", cause)
			}
		}
		return nil
	}), streams(locks, grpclock.Field[*pb.TransferRequest]("account.id")))
	wantCode(t, batchCall(within(t), client), codes.OK)
}
