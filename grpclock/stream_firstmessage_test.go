package grpclock_test

import (
	"context"
	"errors"
	"runtime/pprof"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/reqlock/reqlock/core"
	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
)

// All keys of a stream are taken with its first message.
func TestAllLocksMoreKeysOfAStream(t *testing.T) {
	t.Parallel()
	locks, _ := adaptertest.Locker(t)
	client := serve(t, batchBank(func(ctx context.Context) error {
		if lease, _ := core.LeaseFromContext(ctx); lease.Key() != theKey {
			t.Errorf("the lease is that of %q, not of the first key", lease.Key())
		}
		for _, key := range []string{"second", "third"} {
			if _, err := locks.TryLock(t.Context(), key); !errors.Is(err, core.ErrBusy) {
				t.Errorf("the %s key: %v", key, err)
			}
		}
		return nil
	}), streams(locks, core.All(accountOf, grpclock.Literal("second"), grpclock.Literal("third"))))
	wantCode(t, batchCall(within(t), client), codes.OK)
}

// The refusal of a stream whose key needs no message says what is missing.
func TestStreamWithoutItsMetadata(t *testing.T) {
	t.Parallel()
	interceptor := grpclock.StreamServerInterceptor(adaptertest.UnusedLocker(t), grpclock.Metadata("x-account"))
	err := interceptor(nil, &memoryStream{ctx: t.Context()}, &grpc.StreamServerInfo{FullMethod: pb.Bank_Batch_FullMethodName}, nil)
	if text := status.Convert(err).Message(); !strings.Contains(text, `the metadata "x-account"`) {
		t.Errorf("%q", text)
	}
}

// Headers that an interceptor or the handler sets before the lock is taken are sent
// afterwards.
func TestHeadersBeforeTheLock(t *testing.T) {
	t.Parallel()
	between := func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
		wantCode(t, ss.SetHeader(metadata.Pairs("x-a", "1")), codes.OK)
		return next(srv, ss)
	}
	locks, _ := adaptertest.Locker(t)
	client := serve(t, &bank{
		watch: func(_ *pb.BalanceRequest, s watchServer) error { return s.SetHeader(metadata.Pairs("x-a", "2")) },
		batch: func(s batchServer) error {
			wantCode(t, s.SetHeader(metadata.Pairs("x-a", "2")), codes.OK)
			if _, err := s.Recv(); err != nil {
				return err
			}
			return s.Send(&pb.TransferReply{})
		},
	}, grpc.ChainStreamInterceptor(grpclock.StreamServerInterceptor(locks, accountOf), between))
	wantHeader := func(t *testing.T, s grpc.ClientStream) {
		t.Helper()
		if header, err := s.Header(); strings.Join(header["x-a"], " ") != "1 2" || err != nil {
			t.Errorf("header %v, %v", header, err)
		}
	}
	t.Run("from the server", func(t *testing.T) {
		t.Parallel()
		s, err := client.Watch(within(t), &pb.BalanceRequest{Account: &pb.Account{Id: theKey}})
		if err != nil {
			t.Fatal(err)
		}
		wantHeader(t, s)
		_, err = s.Recv()
		wantCode(t, atEnd(err), codes.OK)
	})
	t.Run("in both directions", func(t *testing.T) {
		t.Parallel()
		s, err := client.Batch(within(t))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Send(transferOf("another")); err != nil {
			t.Fatal(err)
		}
		wantHeader(t, s)
		_, err = s.Recv()
		wantCode(t, err, codes.OK)
	})
}

// If a header that was set before the lock cannot be sent, RecvMsg returns the error.
func TestBadHeaderBeforeTheLock(t *testing.T) {
	t.Parallel()
	locks, _ := adaptertest.Locker(t)
	client := serve(t, &bank{batch: func(s batchServer) error {
		_ = s.SetHeader(metadata.MD{"x-ä": {"1"}})
		_, err := s.Recv()
		return err
	}}, streams(locks, accountOf))
	wantCode(t, batchCall(within(t), client), codes.Internal)
}

// The first message has the key of a stream. If a handler recovers from a panic of
// the key, it cannot continue with the next message.
func TestPanicInKey(t *testing.T) {
	t.Parallel()
	locks, rdb := adaptertest.Locker(t)
	crash := errors.New("crash")
	key := core.Getter(func(c *grpclock.Call) string {
		m, _ := c.Message().(*pb.TransferRequest)
		if m.GetAccount().GetId() == "bad" {
			panic(crash)
		}
		return m.GetAccount().GetId()
	})
	receive := func(s batchServer) (err error) {
		defer func() {
			if caught := recover(); caught != crash { //nolint:errorlint // the very value
				t.Errorf("panic %v", caught)
			}
		}()
		_, err = s.Recv()
		return err
	}
	client := serve(t, &bank{batch: func(s batchServer) error {
		_ = receive(s)
		_, err := s.Recv()
		wantCode(t, err, codes.Internal)
		if adaptertest.IsHeld(t, rdb) {
			t.Error("the second message is locked")
		}
		wantCode(t, s.Send(&pb.TransferReply{}), codes.Internal)
		return nil
	}}, streams(locks, key))
	s, err := client.Batch(within(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"bad", theKey} {
		if err := s.Send(transferOf(id)); atEnd(err) != nil {
			t.Fatal(err)
		}
	}
	_, err = s.Recv()
	if status.Code(err) != codes.Internal || reasonOf(err) != "KEY_ERROR" {
		t.Errorf("%v", err)
	}
}

// A context that is derived from the context of a stream needs no extra goroutine.
func TestContextNeedsNoGoroutine(t *testing.T) {
	t.Parallel()
	locks, _ := adaptertest.Locker(t)
	client := serve(t, batchBank(func(early context.Context) error {
		type key struct{}
		const many = 100
		for name, ctx := range map[string]context.Context{"as it is": early, "with a value": context.WithValue(early, key{}, 1)} {
			var derived []context.Context
			for range many {
				ctx, cancel := context.WithCancel(ctx)
				defer cancel()
				derived = append(derived, ctx)
			}
			var stacks strings.Builder
			_ = pprof.Lookup("goroutine").WriteTo(&stacks, 2)
			if n := strings.Count(stacks.String(), "propagateCancel"); n >= many {
				t.Errorf("%s: %d goroutines for %d contexts", name, n, len(derived))
			}
		}
		return nil
	}), streams(locks, accountOf))
	wantCode(t, batchCall(within(t), client), codes.OK)
}
