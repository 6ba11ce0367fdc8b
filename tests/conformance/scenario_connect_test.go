package conformance

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"connectrpc.com/connect"
	pb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/reqlock/reqlock/connectlock"
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// TestConnectScenarios sends idempotent calls over real connections: sealed answers, in processes with
// other keys, a method that stores none, and copies that learn the first call. The tests of connectlock have keys, fingerprints and answers.
func TestConnectScenarios(t *testing.T) {
	t.Parallel()
	for _, kind := range redistest.Kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			kind.SkipRepeats(t)
			t.Parallel()
			for name, protocol := range map[string]connect.ClientOption{"Connect": connect.WithProtoJSON(), "gRPC": connect.WithGRPC(), "gRPC-Web": connect.WithGRPCWeb()} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					sealedConnectCalls(newEnvironment(t, overConnect(), redistest.Shared(t, kind)), protocol)
					referredConnectCalls(newEnvironment(t, overConnect(), redistest.Shared(t, kind)), protocol)
				})
			}
		})
	}
}

func sealedConnectCalls(e *environment, protocol connect.ClientOption) {
	const text = "a secret of the method"
	runs := 0
	send := func(key string, options ...core.Option) answer {
		say := func(context.Context, *connect.Request[pb.SimpleRequest]) (*connect.Response[pb.SimpleResponse], error) {
			runs++
			return connect.NewResponse(&pb.SimpleResponse{Username: text}), nil
		}
		mux := http.NewServeMux()
		mux.Handle(pb.TestService_UnaryCall_FullMethodName, connect.NewUnaryHandler(pb.TestService_UnaryCall_FullMethodName, say,
			connect.WithInterceptors(connectlock.IdempotentInterceptor(e.locks, connectlock.IdempotencyKey(), options...))))
		return listenConnect(e.T, mux, unaryCall, protocol).send(e.Context(), request{idempotencyKeys: []string{key}, body: "7 to ada"})
	}
	for i, call := range []struct {
		key    string
		sealer core.Option
		copies bool
		want   error
	}{
		{"one", core.WithSealer(sealerOf("now")), false, nil},
		{"one", core.WithSealer(sealerOf("now")), true, nil},
		{"one", core.WithSealer(sealerOf("both", "now")), true, nil},
		{"one", core.WithSealer(sealerOf("new")), false, core.ErrUnreplayable},
		{"two", core.WithoutAnswer(), false, nil},
		{"two", core.WithoutAnswer(), false, core.ErrUnreplayable},
	} {
		got := send(call.key, call.sealer)
		isCopy := strings.Contains(strings.ToLower(got.raw), "idempotent-replayed")
		if isCopy != call.copies || call.want == nil && got.text != text || call.want != nil && (got.outcome != e.rowOf(call.want) || strings.Contains(got.raw, text)) {
			e.Errorf("call %d: %+v", i, got)
		}
		e.wantSealed("now", text)
	}
	if runs != 2 {
		e.Errorf("%d calls have run", runs)
	}
}
