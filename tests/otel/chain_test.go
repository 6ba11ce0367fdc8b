package oteltest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/recovery"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// The stats handler runs around the chain. The handler runs in its span and under the
// lock, and a refusal is the status of the span. A panic frees the lock, whether the
// recovery stands before or behind it.
func TestHandlerRunsInItsSpanUnderTheLock(t *testing.T) {
	t.Parallel()
	calls := map[string]func(context.Context, pb.BankClient) error{"unary": transfer, "stream": deposit}
	for name, test := range map[string]struct {
		held bool
		end  func() error
		code codes.Code
		span string
	}{
		"runs":   {false, func() error { return nil }, codes.OK, "OK"},
		"fails":  {false, func() error { return status.Error(codes.NotFound, "") }, codes.NotFound, "NOT_FOUND"},
		"panics": {false, func() error { panic("crash") }, codes.Unknown, "UNKNOWN"},
		"busy":   {true, nil, codes.Aborted, "ABORTED"},
	} {
		for kind, call := range calls {
			for _, outside := range []bool{true, false} {
				place := map[bool]string{true: "recovery outside", false: "recovery inside"}[outside]
				t.Run(name+", "+kind+", "+place, func(t *testing.T) {
					t.Parallel()
					locks := locktest.New(t)
					if test.held {
						defer locks.Hold("42")()
					}
					spans := tracetest.NewSpanRecorder()
					client := serve(t, locks.Locker, spans, outside, func(ctx context.Context) error {
						if lease, _ := grpclock.FromContext(ctx); lease.Key() != "42" {
							t.Errorf("lease of %q", lease.Key())
						}
						if !trace.SpanFromContext(ctx).IsRecording() {
							t.Error("the handler runs in no span")
						}
						return test.end()
					})
					ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
					defer cancel()
					if err := call(ctx, client); status.Code(err) != test.code {
						t.Errorf("%v", err)
					}
					checkSpan(t, spans, test.span)
					if test.held {
						return
					}
					lease, err := locks.With(core.WithWait(time.Minute)).Lock(ctx, "42")
					if err != nil {
						t.Errorf("the lock is not free afterwards: %v", err)
					}
					_ = lease.Release(ctx)
				})
			}
		}
	}
}

// serve starts a server with the whole chain, and returns a client of it.
func serve(
	t *testing.T, locks *core.Locker, spans sdktrace.SpanProcessor, recoveryOutside bool, run func(context.Context) error,
) pb.BankClient {
	t.Helper()
	account := grpclock.Message(accountOf)
	unary := []grpc.UnaryServerInterceptor{recovery.UnaryServerInterceptor(), grpclock.UnaryServerInterceptor(locks, account)}
	stream := []grpc.StreamServerInterceptor{recovery.StreamServerInterceptor(), grpclock.StreamServerInterceptor(locks, account)}
	if !recoveryOutside {
		unary[0], unary[1] = unary[1], unary[0]
		stream[0], stream[1] = stream[1], stream[0]
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	t.Cleanup(func() { _ = provider.Shutdown(context.Background()) })
	client, _ := startBank(t, &bank{run: run}, grpc.StatsHandler(otelgrpc.NewServerHandler(otelgrpc.WithTracerProvider(provider))),
		grpc.ChainUnaryInterceptor(unary...), grpc.ChainStreamInterceptor(stream...))
	return client
}

// checkSpan waits for the only span of a call, and compares its status.
func checkSpan(t *testing.T, spans *tracetest.SpanRecorder, want string) {
	t.Helper()
	suite.Eventually(t, "a span ends", func() bool { return len(spans.Ended()) > 0 })
	attributes := spans.Ended()[0].Attributes()
	if !slices.Contains(attributes, attribute.String("rpc.response.status_code", want)) {
		t.Errorf("the span has another status than %s: %v", want, attributes)
	}
}
