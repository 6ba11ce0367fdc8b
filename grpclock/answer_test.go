package grpclock_test

import (
	"context"
	"fmt"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// docs/unknown-outcomes.md shows how an operator makes the key of a call whose key is a Join with
// Named.
func TestEndpointKeyOfNamedJoin(t *testing.T) {
	t.Parallel()
	locks := core.Must(core.New(redistest.Start(t).Client(t), adaptertest.LongCommands()...))
	t.Cleanup(func() { _ = locks.Close(context.Background()) })
	const user, clientKey = "ada", "8e03978e-40d5-43e8"
	once := grpclock.IdempotentUnaryServerInterceptor(locks,
		core.Join(grpclock.Metadata("x-user"), grpclock.IdempotencyKey()).Named("payment"))
	ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs("x-user", user, "idempotency-key", `"`+clientKey+`"`))
	got := ""
	_, err := once(ctx, &pb.TransferRequest{}, &grpc.UnaryServerInfo{FullMethod: pb.Bank_Transfer_FullMethodName},
		func(ctx context.Context, _ any) (any, error) {
			attempt, _ := core.AttemptFromContext(ctx)
			got = attempt.Key()
			return &pb.TransferReply{}, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	joined := fmt.Sprintf("%d:%s%d:%s", len(user), user, len(clientKey), clientKey)
	if want := adapter.Must(core.EndpointKey("", pb.Bank_Transfer_FullMethodName, "payment:"+joined)); got != want {
		t.Errorf("the key is %s, the page makes %s", got, want)
	}
}

func TestAnswerNeedsAMessageOrAnError(t *testing.T) {
	t.Parallel()
	if got, err := grpclock.NewAnswer(nil, nil); got != (core.Answer{}) || err == nil {
		t.Errorf("%+v, %v", got, err)
	}
}
