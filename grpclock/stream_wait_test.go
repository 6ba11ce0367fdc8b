package grpclock_test

import (
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/reqlock/reqlock/core"
	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A handler may receive and send at the same time.
func TestConcurrentSendAndReceive(t *testing.T) {
	t.Parallel()
	locks, rdb := adaptertest.Locker(t)
	const messages = 200
	client := serve(t, &bank{batch: func(s batchServer) error {
		received := make(chan int64)
		var receiver sync.WaitGroup
		receiver.Go(func() {
			defer close(received)
			for {
				m, err := s.Recv()
				if err != nil {
					return
				}
				wantLease(t, s)
				received <- m.GetCents()
			}
		})
		defer receiver.Wait()
		for cents := range received {
			if err := s.Send(&pb.TransferReply{Cents: cents}); err != nil {
				t.Errorf("Send: %v", err)
			}
		}
		return nil
	}}, streams(locks, accountOf))
	s, err := client.Batch(within(t))
	if err != nil {
		t.Fatal(err)
	}
	var sender sync.WaitGroup
	sender.Go(func() {
		for range messages {
			if err := s.Send(transferOf(theKey)); err != nil {
				t.Errorf("Send: %v", err)
			}
		}
		_ = s.CloseSend()
	})
	defer sender.Wait()
	for i := range messages {
		if _, err := s.Recv(); err != nil {
			t.Fatalf("reply %d: %v", i, err)
		}
	}
	_, err = s.Recv()
	wantCode(t, atEnd(err), codes.OK)
	suite.Eventually(t, "the key is free", func() bool { return !adaptertest.IsHeld(t, rdb) })
}

// blockEvent returns an observer that reports the first event of a kind, and blocks
// until goOn is closed.
func blockEvent(kind core.EventKind) (observe core.Option, happened, goOn chan struct{}) {
	happened, goOn = make(chan struct{}), make(chan struct{})
	var once sync.Once
	return core.WithObserver(func(e core.Event) {
		if e.Kind == kind {
			once.Do(func() {
				close(happened)
				<-goOn
			})
		}
	}), happened, goOn
}

// If a handler sends while RecvMsg waits for the lock, both fail with INTERNAL.
func TestSendWhileTheLockIsWaitedFor(t *testing.T) {
	t.Parallel()
	observer, waiting, goOn := blockEvent(core.Waiting)
	close(goOn)
	locks, rdb := adaptertest.Locker(t, observer)
	adaptertest.Hold(t, rdb)
	client := serve(t, &bank{batch: func(s batchServer) error {
		received := make(chan error, 1)
		go func() {
			_, err := s.Recv()
			received <- err
		}()
		suite.ReceiveAnywhere(t, "the stream waits for its lock", waiting)
		wantCode(t, s.Send(&pb.TransferReply{}), codes.Internal)
		wantCode(t, suite.ReceiveAnywhere(t, "the receiver is refused", received), codes.Internal)
		return nil
	}}, streams(locks, accountOf, core.WithWait(time.Minute)))
	wantCode(t, batchCall(within(t), client), codes.Internal)
	if token := rdb.Get(t.Context(), "reqlock:"+theKey).Val(); token != adaptertest.ForeignToken {
		t.Error("the key is another's no more")
	}
}

// A lock that is granted after the stream has ended is freed. The handler has sent
// too early, or has returned while RecvMsg waits in another goroutine.
func TestLockThatComesTooLate(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		handle func(*testing.T, grpc.ServerStream) error
		code   codes.Code
	}{
		"sends": {func(t *testing.T, ss grpc.ServerStream) error {
			wantCode(t, ss.SendMsg(&pb.TransferReply{}), codes.Internal)
			return nil
		}, codes.Internal},
		"returns":          {func(*testing.T, grpc.ServerStream) error { return nil }, codes.Internal},
		"returns an error": {func(*testing.T, grpc.ServerStream) error { return status.Error(codes.NotFound, "") }, codes.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			observer, acquired, goOn := blockEvent(core.Acquired)
			locks, rdb := adaptertest.Locker(t, observer)
			received := make(chan error, 1)
			err := grpclock.StreamServerInterceptor(locks, literalMessage)(
				nil, &memoryStream{ctx: t.Context()}, &grpc.StreamServerInfo{},
				func(_ any, ss grpc.ServerStream) error {
					go func() { received <- ss.RecvMsg(&pb.TransferRequest{}) }()
					suite.ReceiveAnywhere(t, "the lock is taken", acquired)
					return test.handle(t, ss)
				})
			wantCode(t, err, test.code)
			if !adaptertest.IsHeld(t, rdb) {
				t.Error("the key is free before the context of its holder has ended")
			}
			close(goOn)
			wantCode(t, suite.ReceiveAnywhere(t, "the receiver is refused", received), codes.Internal)
			if adaptertest.IsHeld(t, rdb) {
				t.Error("the key is held for a stream that has ended")
			}
		})
	}
}
