package main

import (
	"context"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/reqlock/reqlock/core"
	pb "github.com/reqlock/reqlock/examples/bankpb"
)

func TestGRPCAnswers(t *testing.T) {
	t.Parallel()
	s := newTestSite(t, allFrameworks()[3])
	held, err := s.locks.TryLock(t.Context(), "account:dave")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Release(context.Background()) }()
	read, err := s.locks.With(core.WithShared(true)).TryLock(t.Context(), "account:carol")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = read.Release(context.Background()) }()
	client, err := newGRPCClient(s.server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer client.close()

	transfer := func(from, to string, cents int64) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := client.bank.Transfer(ctx, transferOf(from, to, cents))
			return err
		}
	}
	settle := func(from, to string, cents int64) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := client.bank.Settle(ctx, transferOf(from, to, cents))
			return err
		}
	}
	balance := func(of string) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := client.bank.Balance(ctx, &pb.BalanceRequest{Account: &pb.Account{Id: of}})
			return err
		}
	}
	order := func(ctx context.Context) error {
		_, err := client.bank.PlaceOrder(ctx, &pb.PlaceOrderRequest{Item: "tea"})
		return err
	}
	tests := []struct {
		name, user string
		call       func(context.Context) error
		slow       string
		code       codes.Code
	}{
		{"done", "alice", transfer("alice", "bob", 1), "", codes.OK},
		{"all of it", "bob", settle("bob", "alice", 10001), "", codes.OK},
		{"too much", "bob", transfer("bob", "alice", 1), "", codes.FailedPrecondition},
		{"nothing", "alice", transfer("alice", "bob", 0), "", codes.InvalidArgument},
		{"to oneself", "alice", transfer("alice", "alice", 1), "", codes.InvalidArgument},
		{"to an unknown account", "alice", transfer("alice", "zoe", 1), "", codes.NotFound},
		{"no payee", "alice", transfer("alice", "", 1), "", codes.InvalidArgument},
		{"locked payer", "dave", transfer("dave", "bob", 1), "", codes.Aborted},
		{"locked payee", "alice", transfer("alice", "dave", 1), "", codes.Aborted},
		{"no user", "", transfer("dave", "bob", 1), "", codes.Unauthenticated},
		{"not the owner, locked or not", "alice", transfer("dave", "bob", 1), "", codes.PermissionDenied},
		{"reading beside a reader", "carol", balance("carol"), "", codes.OK},
		{"a transfer beside a reader", "carol", transfer("carol", "bob", 1), "", codes.Aborted},
		{"reading another's", "alice", balance("dave"), "", codes.PermissionDenied},
		{"reading an unknown account", "zoe", balance("zoe"), "", codes.NotFound},
		{"order", "ann", order, "", codes.OK},
		{"order without a user", "", order, "", codes.Unauthenticated},
		{"slow", "ann", order, "1ms", codes.OK},
		{"too slow", "ann", order, "1h", codes.InvalidArgument},
		{"no duration", "ann", order, "3", codes.InvalidArgument},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			ctx := t.Context()
			if test.user != "" {
				ctx = as(ctx, test.user)
			}
			if test.slow != "" {
				ctx = metadata.AppendToOutgoingContext(ctx, "slow", test.slow)
			}
			if err := test.call(ctx); status.Code(err) != test.code {
				t.Errorf("%v, not %v", err, test.code)
			}
		})
	}
}
