package grpclock_test

import (
	"context"
	"net/http"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/reqlock/reqlock/core"
	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
	"github.com/reqlock/reqlock/nethttplock"
)

// nilStatus is an error whose status is not set. gRPC sends the code of the error that it wraps.
type nilStatus struct{ error }

func (nilStatus) GRPCStatus() *status.Status { return nil }

func (n nilStatus) Unwrap() error { return n.error }

// What copies of an idempotent call get after calls of a middleware inside.
func TestCopiesAfterCallsInside(t *testing.T) {
	transfer := &grpc.UnaryServerInfo{FullMethod: pb.Bank_Transfer_FullMethodName}
	reads := 0
	keys := core.KeyOf(func(*grpclock.Call) (string, error) {
		if reads++; reads == 1 {
			return "", core.ErrNoKey
		}
		return "", core.ErrInvalidKey
	})
	for name, c := range map[string]struct {
		inside  func(*core.Locker) grpc.UnaryServerInterceptor
		around  func(try func() error) error // the interceptor inside
		ran     bool                         // the call inside has run before
		handler error
		code    codes.Code
		reason  string
	}{
		"an answer that cannot be replayed": {
			inside: func(l *core.Locker) grpc.UnaryServerInterceptor {
				return grpclock.IdempotentUnaryServerInterceptor(l, grpclock.Literal("inside"))
			},
			ran:  true,
			code: codes.FailedPrecondition, reason: "OUTCOME_UNKNOWN",
		},
		"the first of many refusals": {
			inside: func(l *core.Locker) grpc.UnaryServerInterceptor { return grpclock.UnaryServerInterceptor(l, keys) },
			around: func(try func() error) error {
				first := try()
				for range 20 {
					_ = try()
				}
				return first
			},
			code: codes.InvalidArgument, reason: "INVALID_KEY",
		},
		"an error handler that panics": {
			inside: func(l *core.Locker) grpc.UnaryServerInterceptor {
				return grpclock.UnaryServerInterceptor(l, failing(core.ErrNoKey),
					grpclock.WithErrorHandler(func(*grpclock.Call, error) error { panic("oops") }))
			},
			around: func(try func() error) (err error) {
				defer func() { _, err = recover(), status.Error(codes.Aborted, "") }()
				return try()
			},
			code: codes.Aborted,
		},
		"a panic after a refusal": {
			inside: func(l *core.Locker) grpc.UnaryServerInterceptor {
				refused := grpclock.UnaryServerInterceptor(l, failing(core.ErrNoKey))
				lock := grpclock.UnaryServerInterceptor(l, literal)
				return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
					return lock(ctx, req, info, func(ctx context.Context, req any) (any, error) {
						_, err := refused(ctx, req, info, next)
						panic(err) // something between the two may have run the call
					})
				}
			},
			around: func(try func() error) (err error) {
				defer func() { err, _ = recover().(error) }()
				return try()
			},
			code: codes.FailedPrecondition, reason: "OUTCOME_UNKNOWN",
		},
		"a nil status": {
			handler: nilStatus{context.DeadlineExceeded},
			code:    codes.DeadlineExceeded,
		},
	} {
		t.Run(name, func(t *testing.T) {
			locks, _ := adaptertest.Locker(t)
			inner := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
				return next(ctx, req)
			}
			if c.inside != nil {
				inner = c.inside(locks)
			}
			around := func(try func() error) error { return try() }
			if c.around != nil {
				around = c.around
			}
			handler := func(context.Context, any) (any, error) { return &pb.BalanceReply{}, c.handler } // of another method: no copy can get it
			if c.ran {
				_, _ = inner(within(t), transferOf("a"), transfer, handler)
			}
			outer := grpclock.IdempotentUnaryServerInterceptor(locks, grpclock.Literal(theKey),
				grpclock.WithStored(func(code codes.Code) bool { return code == codes.DeadlineExceeded }))
			call := func() error {
				_, err := outer(within(t), transferOf("a"), transfer, func(ctx context.Context, req any) (reply any, err error) {
					return nil, around(func() error {
						_, err := inner(ctx, req, transfer, handler)
						return err
					})
				})
				return err
			}
			_ = call()
			err := call()
			wantCode(t, err, c.code)
			if reason := reasonOf(err); reason != c.reason {
				t.Errorf("the reason is %q, want %q", reason, c.reason)
			}
		})
	}
}

// A gRPC server behind an idempotent HTTP route answers by itself. Its refusals have codes of gRPC,
// which say nothing about the answer of the route.
func TestRefusalBehindAnHTTPRouteIsNoneOfTheRoute(t *testing.T) {
	t.Parallel()
	locks, rdb := adaptertest.Locker(t)
	adaptertest.Hold(t, rdb)
	lock := grpclock.UnaryServerInterceptor(locks, grpclock.Literal(adaptertest.Key))
	runs := 0
	h := nethttplock.Idempotent(locks, nethttplock.IdempotencyKey())(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		runs++
		info := &grpc.UnaryServerInfo{FullMethod: pb.Bank_Transfer_FullMethodName}
		_, err := lock(r.Context(), &pb.TransferRequest{}, info, func(context.Context, any) (any, error) { return nil, nil })
		if status.Code(err) == codes.Aborted {
			http.Error(w, "busy", http.StatusConflict) // as a gateway does
		}
	}))
	for range 2 {
		adaptertest.Pay(t, h, "/", "k", "")
	}
	if runs != 2 {
		t.Errorf("a copy of a refused request got no run: %d", runs)
	}
}
