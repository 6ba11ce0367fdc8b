package grpclock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/grpclock"
)

// The client of a handler that ends with the loss of its lease must not try again, unless nothing
// has happened. A status of the handler's own stays, and so does another error.
func TestHandlerThatLosesItsLease(t *testing.T) {
	t.Parallel()
	type handler = func(ctx context.Context) error
	for name, test := range map[string]struct {
		handler       handler
		inTime        bool   // it does not wait for the end of its lease
		lock, attempt string // the reasons; "" is the handler's own
	}{
		"the context's end": {func(ctx context.Context) error { return ctx.Err() }, false, "LEASE_LOST", "LEASE_LOST"},
		"the cause":         {func(ctx context.Context) error { return fmt.Errorf("transfer: %w", context.Cause(ctx)) }, false, "LEASE_LOST", "LEASE_LOST"},
		"another lease":     {func(context.Context) error { return core.ErrClosed }, true, "LEASE_LOST", "LEASE_LOST"},
		"no effect": {func(ctx context.Context) error {
			if attempt, ok := core.AttemptFromContext(ctx); ok {
				attempt.Decide(core.EndNoEffect)
			}
			return ctx.Err()
		}, false, "LEASE_LOST", "UNAVAILABLE"},
		"its own status, free": {func(ctx context.Context) error {
			if attempt, ok := core.AttemptFromContext(ctx); ok {
				attempt.Decide(core.EndAbort)
			}
			return fmt.Errorf("%w: %w", status.Error(codes.Unauthenticated, ""), context.Cause(ctx))
		}, false, "", ""},
		"a context of its own": {func(context.Context) error { return context.Canceled }, true, "", ""},
		"its own status": {func(context.Context) error {
			return fmt.Errorf("%w: %w", status.Error(codes.Aborted, "late"), core.ErrLost)
		}, false, "", ""},
		"a refusal":           {func(context.Context) error { return &core.Error{Kind: core.ErrClosed} }, false, "", ""},
		"an error of its own": {func(context.Context) error { return errors.New("own") }, false, "", ""},
	} {
		run := func(ctx context.Context) error {
			if !test.inTime {
				<-ctx.Done()
			}
			return test.handler(ctx)
		}
		limit := core.WithMaxHold(time.Millisecond)
		if test.inTime {
			limit = core.WithMaxHold(0)
		}
		unaryCall := func(client pb.BankClient, trailer *metadata.MD) error {
			_, err := client.Transfer(within(t), transferOf("a"), grpc.Trailer(trailer))
			return err
		}
		for kind, row := range map[string]struct {
			server func(locks *core.Locker) (*bank, grpc.ServerOption)
			call   func(client pb.BankClient, trailer *metadata.MD) error
			reason string
		}{
			"a lock": {func(locks *core.Locker) (*bank, grpc.ServerOption) {
				return &bank{transfer: func(ctx context.Context, _ *pb.TransferRequest) error { return run(ctx) }}, unary(locks, literal, limit)
			}, unaryCall, test.lock},
			"an attempt": {func(locks *core.Locker) (*bank, grpc.ServerOption) {
				return &bank{transfer: func(ctx context.Context, _ *pb.TransferRequest) error { return run(ctx) }}, idempotent(locks, literal, limit)
			}, unaryCall, test.attempt},
			"a stream": {func(locks *core.Locker) (*bank, grpc.ServerOption) {
				return &bank{deposit: func(s depositServer) error { return run(s.Context()) }}, streams(locks, literal, limit)
			}, func(client pb.BankClient, trailer *metadata.MD) error {
				s, err := client.Deposit(within(t), grpc.Trailer(trailer))
				if err == nil {
					_, err = s.CloseAndRecv()
				}
				return err
			}, test.lock},
			"a stream with a late lock": {func(locks *core.Locker) (*bank, grpc.ServerOption) {
				return &bank{watch: func(_ *pb.BalanceRequest, s watchServer) error { return run(s.Context()) }},
					streams(locks, grpclock.Field[*pb.BalanceRequest]("account.id"), limit)
			}, func(client pb.BankClient, trailer *metadata.MD) error {
				s, err := client.Watch(within(t), &pb.BalanceRequest{Account: &pb.Account{Id: theKey}}, grpc.Trailer(trailer))
				if err == nil {
					_, err = s.Recv()
				}
				return err
			}, test.lock},
		} {
			t.Run(name+", "+kind, func(t *testing.T) {
				t.Parallel()
				service, option := row.server(locktest.New(t).Locker)
				var trailer metadata.MD
				err := row.call(serve(t, service, option), &trailer)
				pushback := map[string]int{"LEASE_LOST": 1, "UNAVAILABLE": 1}[row.reason]
				if err == nil || reasonOf(err) != row.reason || len(trailer[pushbackName]) != pushback {
					t.Errorf("%v with the reason %q, %v", err, reasonOf(err), trailer)
				}
				if row.reason == "LEASE_LOST" && (status.Code(err) != codes.Unknown || trailer[pushbackName][0] != "-1") {
					t.Errorf("%v, %v", err, trailer)
				}
			})
		}
	}
}
