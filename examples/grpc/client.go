package main

import (
	"context"
	"fmt"
	"io"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	pb "github.com/reqlock/reqlock/examples/grpc/bank/v1"
)

// tryOut makes two transfers from one account at once, and prints the results.
func tryOut(ctx context.Context, out io.Writer, addr string) error {
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	client := pb.NewBankClient(conn)
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer ada-token")

	answers := make(chan string, 2)
	for range cap(answers) {
		go func() {
			reply, err := client.Transfer(ctx, &pb.TransferRequest{
				Account: &pb.Account{Id: "ada"}, Payee: &pb.Account{Id: "bob"}, Cents: 30,
			})
			answers <- describe(reply, err)
		}()
	}
	fmt.Fprintln(out, "Two transfers at once, one of which gets ABORTED:")
	for range cap(answers) {
		fmt.Fprintln(out, " ", <-answers)
	}
	fmt.Fprintln(out)
	return nil
}

// describe returns the text of an answer with its details.
func describe(reply *pb.TransferReply, err error) string {
	if err == nil {
		return fmt.Sprintf("OK: %d cents are left", reply.GetCents())
	}
	refusal := status.Convert(err)
	text := fmt.Sprintf("%v: %s", refusal.Code(), refusal.Message())
	for _, detail := range refusal.Details() {
		switch detail := detail.(type) {
		case *errdetails.ErrorInfo:
			text += fmt.Sprintf(" Reason %s of %s", detail.GetReason(), detail.GetDomain())
		case *errdetails.RetryInfo:
			text += fmt.Sprintf(", try again in %v", detail.GetRetryDelay().AsDuration())
		}
	}
	return text
}
