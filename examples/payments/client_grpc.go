package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/reqlock/reqlock/examples/bankpb"
)

// replayedMark is the metadata that marks a replay.
const replayedMark = "idempotent-replayed"

// A grpcClient is a client of the gRPC service.
type grpcClient struct {
	conn *grpc.ClientConn
	bank pb.BankClient
}

// newGRPCClient returns a client of the service at an address.
func newGRPCClient(addr string) (*grpcClient, error) {
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	return &grpcClient{conn: conn, bank: pb.NewBankClient(conn)}, nil
}

func (c *grpcClient) close() { _ = c.conn.Close() }

func (c *grpcClient) transfer(ctx context.Context, from, to string, cents int64) (answer, error) {
	_, err := c.bank.Transfer(as(ctx, from), transferOf(from, to, cents))
	return answerOfCall(ctx, err)
}

func (c *grpcClient) settle(ctx context.Context, from, to string, cents int64) (answer, error) {
	_, err := c.bank.Settle(as(ctx, from), transferOf(from, to, cents))
	return answerOfCall(ctx, err)
}

// pay makes the call's message and the metadata of its header the content: there
// the service tells which transfer it has made.
func (c *grpcClient) pay(ctx context.Context, key, from, to string, cents int64) (answer, error) {
	var header metadata.MD
	ctx = metadata.AppendToOutgoingContext(as(ctx, from), "idempotency-key", strconv.Quote(key))
	reply, err := c.bank.Transfer(ctx, transferOf(from, to, cents), grpc.Header(&header))
	a, err := answerOfCall(ctx, err)
	if err != nil {
		return answer{}, err
	}
	message, err := proto.MarshalOptions{Deterministic: true}.Marshal(reply)
	a.Replayed = slices.Equal(header.Get(replayedMark), []string{"true"})
	delete(header, replayedMark)
	a.Content = fmt.Sprintf("%s\n%v\n%x", a.Status, header, message) // a map prints in the order of its keys
	return a, err
}

func (c *grpcClient) order(ctx context.Context, user, item string) (answer, error) {
	_, err := c.bank.PlaceOrder(as(ctx, user), &pb.PlaceOrderRequest{Item: item})
	return answerOfCall(ctx, err)
}

func (c *grpcClient) balance(ctx context.Context, account string) (answer, error) {
	_, err := c.bank.Balance(as(ctx, account), &pb.BalanceRequest{Account: &pb.Account{Id: account}})
	return answerOfCall(ctx, err)
}

// as returns a context for the calls of a user.
func as(ctx context.Context, user string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+user)
}

func transferOf(from, to string, cents int64) *pb.TransferRequest {
	return &pb.TransferRequest{Account: &pb.Account{Id: from}, Payee: &pb.Account{Id: to}, Cents: cents}
}

// answerOfCall reads the error of a call. That of a busy lock is ABORTED with
// the reason "BUSY", or "WAIT_TIMEOUT" after a wait. A call that its client
// gave up has no answer.
func answerOfCall(ctx context.Context, err error) (answer, error) {
	if err != nil && ctx.Err() != nil {
		return answer{}, context.Cause(ctx)
	}
	said := status.Convert(err)
	a := answer{
		Done:   said.Code() == codes.OK,
		Status: code.Code(said.Code()).String(), //nolint:gosec // a code is small
		Retry:  grpcProtocol.Retry,
	}
	for _, detail := range said.Details() {
		switch d := detail.(type) {
		case *errdetails.ErrorInfo:
			a.Busy = said.Code() == codes.Aborted && d.GetDomain() == "reqlock" &&
				(d.GetReason() == "BUSY" || d.GetReason() == "WAIT_TIMEOUT")
			a.Unknown = d.GetReason() == "OUTCOME_UNKNOWN"
		case *errdetails.RetryInfo:
			a.RetryAfter = max(d.GetRetryDelay().AsDuration(), time.Nanosecond)
		}
	}
	return a, nil
}
