package oteltest

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	pb "github.com/reqlock/reqlock/examples/bankpb"
)

// bank is a server with methods that run a function of the test.
type bank struct {
	pb.UnimplementedBankServer
	run func(context.Context) error
}

func (b *bank) Transfer(ctx context.Context, _ *pb.TransferRequest) (*pb.TransferReply, error) {
	return &pb.TransferReply{}, b.run(ctx)
}

func (b *bank) Deposit(s grpc.ClientStreamingServer[pb.DepositRequest, pb.BalanceReply]) error {
	if _, err := s.Recv(); err != nil {
		return err
	}
	if err := b.run(s.Context()); err != nil {
		return err
	}
	return s.SendAndClose(&pb.BalanceReply{})
}

// transfer makes a unary call for account 42.
func transfer(ctx context.Context, client pb.BankClient) error {
	_, err := client.Transfer(ctx, &pb.TransferRequest{Account: &pb.Account{Id: "42"}})
	return err
}

// deposit sends a stream with one message for account 42.
func deposit(ctx context.Context, client pb.BankClient) error {
	s, err := client.Deposit(ctx)
	if err != nil {
		return err
	}
	if err := s.Send(&pb.DepositRequest{Account: &pb.Account{Id: "42"}}); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	_, err = s.CloseAndRecv()
	return err
}

// accountOf returns the account of a request of the bank.
func accountOf(m interface{ GetAccount() *pb.Account }) string { return m.GetAccount().GetId() }

// startBank starts a server of a bank, and returns a client of it. stop waits for the calls that
// run, and for their spans.
func startBank(t *testing.T, served *bank, opts ...grpc.ServerOption) (client pb.BankClient, stop func()) {
	t.Helper()
	server := grpc.NewServer(append(opts, grpc.WaitForHandlers(true))...)
	pb.RegisterBankServer(server, served)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		_ = conn.Close()
		server.Stop()
		if err := <-ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	t.Cleanup(stop)
	return pb.NewBankClient(conn), stop
}
