package connectlock_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/reqlock/reqlock/connectlock"
	"github.com/reqlock/reqlock/core"
	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// warnings records the texts of Warned events, and the keys that were acquired.
type warnings struct {
	mu    sync.Mutex
	texts []string
	keys  []string
}

func (w *warnings) observe(e core.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e.Kind {
	case core.Warned:
		w.texts = append(w.texts, e.Err.Error())
	case core.Acquired:
		w.keys = append(w.keys, e.Key.Raw())
	default:
	}
}

// got returns what was recorded.
func (w *warnings) got() (texts, keys []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.texts), slices.Clone(w.keys)
}

// wantLease checks that a stream runs under the lock of theKey.
func wantLease(ctx context.Context, t *testing.T) {
	t.Helper()
	if lease, ok := core.LeaseFromContext(ctx); !ok || lease.Key() != theKey || ctx.Err() != nil {
		t.Errorf("lease of %q, %v; %v", lease.Key(), ok, ctx.Err())
	}
}

// A stream takes its lock when it opens, or with its first message if the key reads the message. Its
// context is the same before and after that. In a server stream, the message comes before the handler.
func TestWhenAStreamTakesItsLock(t *testing.T) {
	t.Parallel()
	own := core.KeyOf(func(c *connectlock.Call) (string, error) {
		m, ok := c.Message().(*pb.DepositRequest)
		if !ok {
			return "", core.ErrSkip // would run without a lock
		}
		return m.GetAccount().GetId(), nil
	})
	header := connectlock.Header("x-account")
	for name, test := range map[string]struct {
		key     connectlock.Key
		opening bool // locked before the first message
		without connect.Code
	}{
		"a header":                {header, true, 0},
		"the message":             {accountOf, false, connect.CodeInvalidArgument},
		"a function of one's own": {own, false, 0},
		"a header, else message":  {core.First(header, accountOf), true, 0},
		"message, else a header":  {core.First(accountOf, header), false, 0},
		"both":                    {core.All(header, accountOf), false, connect.CodeInvalidArgument},
		"a condition on the message": {header.When(func(c *connectlock.Call) bool {
			m, _ := c.Message().(*pb.DepositRequest)
			return m.GetCents() > 0
		}), false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks, rdb := adaptertest.Locker(t)
			c := serve(t, &bank{deposit: func(ctx context.Context, s depositStream) (*connect.Response[pb.BalanceReply], error) {
				if lease, ok := core.LeaseFromContext(ctx); ok != test.opening {
					t.Errorf("at the opening, lease of %q", lease.Key())
				}
				n := int64(0)
				for ; s.Receive(); n++ {
					wantLease(ctx, t)
				}
				return connect.NewResponse(&pb.BalanceReply{Cents: n}), s.Err()
			}}, locked(connectlock.Interceptor(locks, test.key)))
			for _, n := range []int64{3, 0} {
				s := c.deposit.CallClientStream(within(t))
				s.RequestHeader().Set("X-Account", theKey)
				for range n {
					_ = s.Send(&pb.DepositRequest{Account: &pb.Account{Id: theKey}, Cents: 1})
				}
				reply, err := s.CloseAndReceive()
				want := test.without
				if n > 0 {
					want = 0
				}
				if wantCode(t, err, want); err == nil && reply.Msg.GetCents() != n {
					t.Errorf("%v", reply)
				}
			}
			suite.Eventually(t, "the key is free", func() bool { return !adaptertest.IsHeld(t, rdb) })
		})
	}
	locks, _ := adaptertest.Locker(t)
	c := serve(t, &bank{watch: func(ctx context.Context, r *connect.Request[pb.BalanceRequest], s watchStream) error {
		wantLease(ctx, t)
		return s.Send(&pb.BalanceReply{Cents: int64(len(r.Msg.GetAccount().GetId()))})
	}}, locked(connectlock.Interceptor(locks, accountOf)))
	s, err := c.watch.CallServerStream(within(t), connect.NewRequest(&pb.BalanceRequest{Account: &pb.Account{Id: theKey}}))
	if err != nil || !s.Receive() || s.Msg().GetCents() != int64(len(theKey)) || s.Receive() || s.Err() != nil || s.Close() != nil {
		t.Errorf("%v, %v", err, s.Err())
	}
}

// If a handler sends, returns or continues without its lock, the client gets an error and no message.
func TestMisbehavingHandlers(t *testing.T) {
	t.Parallel()
	reply := &pb.TransferReply{Cents: 1}
	for name, test := range map[string]struct {
		busy   bool
		handle func(ctx context.Context, t *testing.T, s batchStream) error
		code   connect.Code
		reason string
	}{
		"sends before it receives, and goes on": {false, func(ctx context.Context, t *testing.T, s batchStream) error {
			wantCode(t, s.Send(reply), connect.CodeInternal)
			_, err := s.Receive()
			wantCode(t, err, connect.CodeInternal)
			wantCode(t, s.Send(reply), connect.CodeInternal)
			suite.ReceiveAnywhere(t, "the context ends", ctx.Done())
			return nil
		}, connect.CodeInternal, "INTERNAL"},
		"returns before it receives": {false, func(context.Context, *testing.T, batchStream) error { return nil }, connect.CodeInternal, "INTERNAL"},
		"returns an error of its own then": {false, func(context.Context, *testing.T, batchStream) error {
			return connect.NewError(connect.CodePermissionDenied, nil)
		}, connect.CodePermissionDenied, ""},
		"returns nil after a refusal": {true, func(_ context.Context, _ *testing.T, s batchStream) error {
			_, _ = s.Receive()
			return nil
		}, connect.CodeAborted, "BUSY"},
		"sends and receives after a refusal": {true, func(ctx context.Context, t *testing.T, s batchStream) error {
			_, err := s.Receive()
			wantCode(t, err, connect.CodeAborted)
			wantCode(t, s.Send(reply), connect.CodeAborted)
			_, err = s.Receive()
			wantCode(t, err, connect.CodeAborted)
			if cause := context.Cause(ctx); !errors.Is(cause, core.ErrBusy) {
				t.Errorf("the cause of the context is %v", cause)
			}
			return connect.NewError(connect.CodeDataLoss, nil)
		}, connect.CodeAborted, "BUSY"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sent := &warnings{}
			locks, rdb := adaptertest.Locker(t, core.WithObserver(sent.observe))
			if test.busy {
				adaptertest.Hold(t, rdb)
			}
			c := serve(t, &bank{batch: func(ctx context.Context, s batchStream) error { return test.handle(ctx, t, s) }},
				locked(connectlock.Interceptor(locks, accountOf)))
			got, err := batchOf(within(t), c, theKey)
			if wantCode(t, err, test.code); got != nil || reasonOf(err) != test.reason || strings.Contains(err.Error(), theKey) {
				t.Errorf("%v, %v", got, err)
			}
			if !test.busy && adaptertest.IsHeld(t, rdb) {
				t.Error("the key is held")
			}
			tooEarly := test.reason == "INTERNAL"
			if texts, _ := sent.got(); len(texts) > 1 || (len(texts) == 1) != tooEarly || tooEarly && !strings.Contains(texts[0], "receive it first") {
				t.Errorf("the observer got %q", texts)
			}
		})
	}
}

// A goneConn is a stream whose client has left before its first message.
type goneConn struct{ memoryConn }

func (goneConn) Receive(any) error { return connect.NewError(connect.CodeCanceled, nil) }

// That a client leaves is no mistake of the program, of which the observers learn.
func TestClientThatLeavesBeforeItsFirstMessage(t *testing.T) {
	t.Parallel()
	sent := &warnings{}
	left, leave := context.WithCancel(t.Context())
	leave()
	_ = connectlock.Interceptor(adaptertest.UnusedLocker(t, core.WithObserver(sent.observe)), accountOf).WrapStreamingHandler(
		func(_ context.Context, conn connect.StreamingHandlerConn) error {
			_ = conn.Receive(&pb.TransferRequest{})
			return nil
		})(left, goneConn{})
	if texts, _ := sent.got(); len(texts) > 0 {
		t.Errorf("the observer got %q", texts)
	}
}

// Interceptors of a stream take their locks from the outside inwards, even if only the outer key is in
// the message. Interceptors with the same key take one lock.
func TestStreamsLockFromTheOutsideInwards(t *testing.T) {
	t.Parallel()
	other := connectlock.Literal("other")
	for name, test := range map[string]struct {
		keys []connectlock.Key
		want []string
	}{
		"same key":                        {[]connectlock.Key{accountOf, literal, accountOf}, []string{theKey}},
		"in the message and known before": {[]connectlock.Key{accountOf, other}, []string{theKey, "other"}},
		"known before and in the message": {[]connectlock.Key{other, accountOf}, []string{"other", theKey}},
		"skipped, and known before":       {[]connectlock.Key{failing(core.ErrSkip), other, accountOf}, []string{"other", theKey}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := &warnings{}
			locks, _ := adaptertest.Locker(t, core.WithObserver(got.observe))
			var chain []connect.Interceptor
			for _, key := range test.keys {
				chain = append(chain, connectlock.Interceptor(locks, key))
			}
			c := serve(t, &bank{batch: func(ctx context.Context, s batchStream) error {
				if _, err := s.Receive(); err != nil {
					return err
				}
				if lease, _ := core.LeaseFromContext(ctx); lease.Key() != test.want[len(test.want)-1] {
					t.Errorf("the lease is that of %q, not the innermost", lease.Key())
				}
				return s.Send(&pb.TransferReply{})
			}}, locked(chain...))
			_, err := batchOf(within(t), c, theKey)
			wantCode(t, err, 0)
			if _, keys := got.got(); !slices.Equal(keys, test.want) {
				t.Errorf("locked %q, want %q", keys, test.want)
			}
		})
	}
}

// A lost lock ends the context of a stream that took its lock with the first message, also of a context
// that the handler derived before. The client gets the reason.
func TestLostLeaseOfLateStream(t *testing.T) {
	t.Parallel()
	locks, rdb := adaptertest.Locker(t, core.WithTTL(time.Second), core.WithWait(20*time.Second))
	c := serve(t, &bank{batch: func(early context.Context, s batchStream) error {
		derived, cancel := context.WithCancel(early)
		defer cancel()
		if _, err := s.Receive(); err != nil {
			return err
		}
		redistest.LoseAnywhere(t, rdb, "the context ends", early.Done(), "reqlock:"+theKey)
		suite.ReceiveAnywhere(t, "the derived context ends", derived.Done())
		if cause := context.Cause(derived); !errors.Is(cause, core.ErrLost) {
			t.Errorf("cause %v", cause)
		}
		return early.Err()
	}}, locked(connectlock.Interceptor(locks, accountOf)))
	_, err := batchOf(within(t), c, theKey)
	if wantCode(t, err, connect.CodeUnknown); reasonOf(err) != "LEASE_LOST" {
		t.Errorf("%v", err)
	}
}

// The first message has the key. If a handler recovers from a panic of the key, it cannot continue with
// the next message.
func TestPanicInKey(t *testing.T) {
	t.Parallel()
	locks, rdb := adaptertest.Locker(t)
	key := core.Getter(func(c *connectlock.Call) string {
		m, _ := c.Message().(*pb.TransferRequest)
		if m.GetAccount().GetId() == "bad" {
			panic("crash")
		}
		return m.GetAccount().GetId()
	})
	c := serve(t, &bank{batch: func(_ context.Context, s batchStream) error {
		func() {
			defer func() { _ = recover() }()
			_, _ = s.Receive()
		}()
		_, err := s.Receive()
		if wantCode(t, err, connect.CodeInternal); adaptertest.IsHeld(t, rdb) {
			t.Error("the second message is locked")
		}
		return nil
	}}, locked(connectlock.Interceptor(locks, key)))
	s := c.batch.CallBidiStream(within(t))
	for _, id := range []string{"bad", theKey} {
		_ = s.Send(transferOf(id).Msg)
	}
	_, err := s.Receive()
	if wantCode(t, err, connect.CodeInternal); reasonOf(err) != "KEY_ERROR" {
		t.Errorf("%v", err)
	}
	_ = s.CloseResponse()
}

// A handler may receive and send at the same time.
func TestConcurrentSendAndReceive(t *testing.T) {
	t.Parallel()
	locks, _ := adaptertest.Locker(t)
	const messages = 100
	c := serve(t, &bank{batch: func(_ context.Context, s batchStream) error {
		received := make(chan int64)
		go func() {
			defer close(received)
			for m, err := s.Receive(); err == nil; m, err = s.Receive() {
				received <- m.GetCents()
			}
		}()
		for cents := range received {
			if err := s.Send(&pb.TransferReply{Cents: cents}); err != nil {
				t.Errorf("Send: %v", err)
			}
		}
		return nil
	}}, locked(connectlock.Interceptor(locks, accountOf)))
	s := c.batch.CallBidiStream(within(t))
	var sender sync.WaitGroup
	sender.Go(func() {
		for range messages {
			_ = s.Send(transferOf(theKey).Msg)
		}
		_ = s.CloseRequest()
	})
	defer sender.Wait()
	for i := range messages {
		if _, err := s.Receive(); err != nil {
			t.Fatalf("reply %d: %v", i, err)
		}
	}
	if _, err := s.Receive(); !errors.Is(err, io.EOF) {
		t.Errorf("%v", err)
	}
	_ = s.CloseResponse()
}

// A memoryConn is a stream without a connection.
type memoryConn struct{ connect.StreamingHandlerConn }

func (memoryConn) Spec() connect.Spec         { return transferred }
func (memoryConn) Peer() connect.Peer         { return connect.Peer{} }
func (memoryConn) RequestHeader() http.Header { return nil }
func (memoryConn) Send(any) error             { return nil }
func (memoryConn) Receive(m any) error {
	m.(*pb.TransferRequest).Account = &pb.Account{Id: theKey}
	return nil
}

// A stream whose key is in its first message costs little more than its lock.
func TestAllocationsOfAStream(t *testing.T) { //nolint:paralleltest // AllocsPerRun counts the allocations of all goroutines
	if suite.Race {
		t.Skip("the race detector allocates")
	}
	locks, _ := adaptertest.Locker(t)
	var handler connect.StreamingHandlerFunc = func(_ context.Context, conn connect.StreamingHandlerConn) error {
		if err := conn.Receive(&pb.TransferRequest{}); err != nil {
			return err
		}
		return conn.Send(&pb.TransferReply{})
	}
	locked, ctx := connectlock.Interceptor(locks, accountOf).WrapStreamingHandler(handler), t.Context()
	adaptertest.CheckAllocations(t, locks, handler, locked, func(h connect.StreamingHandlerFunc) error { return h(ctx, memoryConn{}) })
}

// A lock that is granted after the stream has ended is freed.
func TestLockThatComesTooLate(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		handle func(connect.StreamingHandlerConn) error
		code   connect.Code
	}{
		"sends":            {func(conn connect.StreamingHandlerConn) error { return conn.Send(&pb.TransferReply{}) }, connect.CodeInternal},
		"returns":          {func(connect.StreamingHandlerConn) error { return nil }, connect.CodeInternal},
		"returns an error": {func(connect.StreamingHandlerConn) error { return notFound }, connect.CodeNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			granted, goOn := make(chan struct{}), make(chan struct{})
			locks, rdb := adaptertest.Locker(t, core.WithObserver(func(e core.Event) {
				if e.Kind == core.Acquired {
					close(granted)
					<-goOn
				}
			}))
			received := make(chan error, 1)
			err := connectlock.Interceptor(locks, accountOf).WrapStreamingHandler(func(_ context.Context, conn connect.StreamingHandlerConn) error {
				go func() { received <- conn.Receive(&pb.TransferRequest{}) }()
				suite.ReceiveAnywhere(t, "the lock is taken", granted)
				return test.handle(conn)
			})(t.Context(), memoryConn{})
			wantCode(t, err, test.code)
			close(goOn)
			if err := suite.Receive(t, "the receiver is refused", received); err == nil {
				t.Error("a stream that has ended goes on")
			}
			if adaptertest.IsHeld(t, rdb) {
				t.Error("the key is held for a stream that has ended")
			}
		})
	}
}
