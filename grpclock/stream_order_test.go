package grpclock_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/reqlock/reqlock/core"
	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// wrapped is a stream interceptor that adds a value to the context.
func wrapped(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	type key struct{}
	return next(srv, &streamIn{ss, context.WithValue(ss.Context(), key{}, 1)})
}

// streamIn is a stream with another context.
type streamIn struct {
	grpc.ServerStream
	ctx context.Context
}

func (s *streamIn) Context() context.Context { return s.ctx }

// acquired is an observer, and the keys that it has seen locked.
type acquired struct {
	mu   sync.Mutex
	keys []string
}

func (a *acquired) observe(e core.Event) {
	if e.Kind == core.Acquired {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.keys = append(a.keys, e.Key.Raw())
	}
}

// Interceptors of a stream take their locks from the outside inwards, as interceptors of
// a unary call do, even if only the outer key is in the message. Interceptors with the
// same key take one lock.
func TestStreamsLockFromTheOutsideInwards(t *testing.T) {
	t.Parallel()
	other := grpclock.Literal("other")
	for name, test := range map[string]struct {
		keys []grpclock.Key
		want []string
	}{
		"same key, in the message twice":            {[]grpclock.Key{accountOf, accountOf, accountOf}, []string{theKey}},
		"same key, in the message and known before": {[]grpclock.Key{accountOf, literal}, []string{theKey}},
		"same key, known before and in the message": {[]grpclock.Key{literal, accountOf}, []string{theKey}},
		"in the message and known before":           {[]grpclock.Key{accountOf, other}, []string{theKey, "other"}},
		"known before and in the message":           {[]grpclock.Key{other, accountOf}, []string{"other", theKey}},
		"known before, behind two in the message":   {[]grpclock.Key{accountOf, literalMessage, other}, []string{theKey, "other"}},
		"skipped, and known before":                 {[]grpclock.Key{failing(core.ErrSkip), other, accountOf}, []string{"other", theKey}},
	} {
		for between, interceptor := range map[string]grpc.StreamServerInterceptor{"": nil, ", wrapped": wrapped} {
			t.Run(name+between, func(t *testing.T) {
				t.Parallel()
				var got acquired
				locks, rdb := adaptertest.Locker(t, core.WithObserver(got.observe))
				var chain []grpc.StreamServerInterceptor
				for _, key := range test.keys {
					chain = append(chain, grpclock.StreamServerInterceptor(locks, key))
					if interceptor != nil {
						chain = append(chain, interceptor)
					}
				}
				client := serve(t, &bank{batch: func(s batchServer) error {
					if _, err := s.Recv(); err != nil {
						return err
					}
					if lease, _ := core.LeaseFromContext(s.Context()); lease.Key() != test.want[len(test.want)-1] {
						t.Errorf("the lease is that of %q, not the innermost", lease.Key())
					}
					return s.Send(&pb.TransferReply{})
				}}, grpc.ChainStreamInterceptor(chain...))
				wantCode(t, batchCall(within(t), client), codes.OK)
				if !slices.Equal(got.keys, test.want) {
					t.Errorf("locked %q, want %q", got.keys, test.want)
				}
				suite.Eventually(t, "the key is free", func() bool { return !adaptertest.IsHeld(t, rdb) })
			})
		}
	}
}

// If the outer lock is already taken, because an interceptor has received the first
// message, the inner lock is taken when the stream opens.
func TestStreamBehindItsFirstMessage(t *testing.T) {
	t.Parallel()
	locks, _ := adaptertest.Locker(t)
	receive := func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
		if err := ss.RecvMsg(new(pb.TransferRequest)); err != nil {
			return err
		}
		return next(srv, ss)
	}
	client := serve(t, &bank{batch: func(s batchServer) error {
		if lease, _ := core.LeaseFromContext(s.Context()); lease.Key() != "other" {
			t.Errorf("the lease is that of %q", lease.Key())
		}
		return s.Send(&pb.TransferReply{})
	}}, grpc.ChainStreamInterceptor(grpclock.StreamServerInterceptor(locks, accountOf), receive,
		grpclock.StreamServerInterceptor(locks, grpclock.Literal("other"))))
	wantCode(t, batchCall(within(t), client), codes.OK)
}

// A timeout interceptor that answers while its handler still runs belongs around the
// lock. Inside, the lock ends with the answer.
func TestTimeoutInterceptor(t *testing.T) {
	t.Parallel()
	for name, outside := range map[string]bool{"outside": true, "inside": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			forEachCall(t, func(t *testing.T, key grpclock.Key, bank func(func(context.Context) error) *bank, call func(context.Context, pb.BankClient) error) {
				locks, rdb := adaptertest.Locker(t)
				running, end, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
				timeout := func(inside func() error) error {
					go func() {
						defer close(ended)
						_ = inside()
					}()
					suite.ReceiveAnywhere(t, "the handler runs", running)
					return status.Error(codes.DeadlineExceeded, "too slow")
				}
				var c chain
				if outside {
					c.around(timeout)
				}
				c.lock(locks, key)
				if !outside {
					c.around(timeout)
				}
				client := serve(t, bank(func(context.Context) error {
					close(running)
					suite.ReceiveAnywhere(t, "the handler may end", end)
					return nil
				}), c.options()...)
				wantCode(t, call(within(t), client), codes.DeadlineExceeded)
				if adaptertest.IsHeld(t, rdb) != outside {
					t.Errorf("the handler runs, and the key is held: %v", !outside)
				}
				close(end)
				suite.ReceiveAnywhere(t, "the handler has returned", ended)
				if adaptertest.IsHeld(t, rdb) {
					t.Error("the handler has returned, and the key is held")
				}
			})
		})
	}
}
