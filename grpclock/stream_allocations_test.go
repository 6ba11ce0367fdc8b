package grpclock_test

import (
	"testing"

	"google.golang.org/grpc"

	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A stream whose key is in its first message costs little more than its lock.
func TestAllocationsOfAStream(t *testing.T) { //nolint:paralleltest // AllocsPerRun counts the allocations of all goroutines
	if suite.Race {
		t.Skip("the race detector allocates")
	}
	locks, _ := adaptertest.Locker(t)
	ctx, info := t.Context(), &grpc.StreamServerInfo{FullMethod: pb.Bank_Batch_FullMethodName}
	interceptor := grpclock.StreamServerInterceptor(locks, accountOf)
	var handler grpc.StreamHandler = func(_ any, ss grpc.ServerStream) error {
		if err := ss.RecvMsg(&pb.TransferRequest{}); err != nil {
			return err
		}
		return ss.SendMsg(&pb.TransferReply{})
	}
	locked := func(srv any, ss grpc.ServerStream) error {
		return interceptor(srv, ss, info, handler)
	}
	adaptertest.CheckAllocations(t, locks, handler, locked, func(h grpc.StreamHandler) error {
		return h(nil, &memoryStream{ctx: ctx})
	})
}
