package grpclock_test

import (
	"context"
	"errors"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// The event of an unknown outcome says what the handler did, and nothing from the call.
func TestUnknownOutcomeSaysWhy(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		handler func(ctx context.Context) error
		options []core.Option
		want    string
	}{
		"a code": {
			func(context.Context) error { return status.Error(codes.Internal, "secret") }, nil,
			"reqlock: the handler ended with code Internal",
		},
		"an error": {
			func(context.Context) error { return errors.New("secret") }, nil, "reqlock: the handler ended with code Unknown",
		},
		"a panic": {
			func(context.Context) error { panic("secret") }, nil, "reqlock: the handler panicked or ended its goroutine",
		},
		"a decision": {
			func(ctx context.Context) error {
				attempt, _ := core.AttemptFromContext(ctx)
				attempt.Decide(core.EndUnknown)
				return nil
			}, nil,
			"reqlock: the handler decided EndUnknown",
		},
		"a function that panics": {
			func(context.Context) error { return nil },
			[]core.Option{grpclock.WithStored(func(codes.Code) bool { panic("secret") })},
			"reqlock: the function of WithUnknown or WithStored panicked",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			events := make(chan core.Event, 9)
			locks := locktest.New(t, core.WithObserver(func(e core.Event) {
				if e.Kind == core.OutcomeUnknown {
					events <- e
				}
			}))
			interceptor := grpclock.IdempotentUnaryServerInterceptor(locks.Locker, literal, test.options...)
			func() {
				defer func() { _ = recover() }()
				_, _ = interceptor(t.Context(), transferOf("a"), &grpc.UnaryServerInfo{FullMethod: "/a.B/C"},
					func(ctx context.Context, _ any) (any, error) { return transferOf("b"), test.handler(ctx) })
			}()
			if event := suite.Receive(t, "an event", events); event.Err == nil || event.Err.Error() != test.want {
				t.Errorf("%v, want %s", event.Err, test.want)
			}
		})
	}
}
