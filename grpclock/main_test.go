package grpclock_test

import (
	"context"
	"net"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/reqlock/reqlock/core"
	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// theKey is the key of requests if a test gives no other.
const theKey = adaptertest.Key

// literal locks theKey.
var literal = grpclock.Literal(theKey)

// plaintext is for clients without TLS.
var plaintext = grpc.WithTransportCredentials(insecure.NewCredentials())

// within returns a context with a deadline for the calls of a test.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// bank is a server. A test sets the methods that it needs; the others answer with
// empty messages.
type bank struct {
	pb.UnimplementedBankServer
	transfer func(context.Context, *pb.TransferRequest) error
	reply    func(context.Context, *pb.TransferRequest) (*pb.TransferReply, error) // of Transfer, before transfer
	watch    func(*pb.BalanceRequest, grpc.ServerStreamingServer[pb.BalanceReply]) error
	deposit  func(grpc.ClientStreamingServer[pb.DepositRequest, pb.BalanceReply]) error
	batch    func(grpc.BidiStreamingServer[pb.TransferRequest, pb.TransferReply]) error
}

func (b *bank) Transfer(ctx context.Context, m *pb.TransferRequest) (*pb.TransferReply, error) {
	if b.reply != nil {
		return b.reply(ctx, m)
	}
	if b.transfer != nil {
		if err := b.transfer(ctx, m); err != nil {
			return nil, err
		}
	}
	return &pb.TransferReply{Cents: m.GetCents()}, nil
}

func (b *bank) Balance(context.Context, *pb.BalanceRequest) (*pb.BalanceReply, error) {
	return &pb.BalanceReply{}, nil
}

func (b *bank) Watch(m *pb.BalanceRequest, s grpc.ServerStreamingServer[pb.BalanceReply]) error {
	return b.watch(m, s)
}

func (b *bank) Deposit(s grpc.ClientStreamingServer[pb.DepositRequest, pb.BalanceReply]) error {
	return b.deposit(s)
}

func (b *bank) Batch(s grpc.BidiStreamingServer[pb.TransferRequest, pb.TransferReply]) error {
	return b.batch(s)
}

// serve starts a server on a real connection, and returns a client of it.
func serve(t *testing.T, b *bank, opts ...grpc.ServerOption) pb.BankClient {
	t.Helper()
	return pb.NewBankClient(dial(t, listen(t, b, opts...), plaintext))
}

// listen starts a server and returns its address.
func listen(t testing.TB, b *bank, opts ...grpc.ServerOption) (addr string) {
	t.Helper()
	return listenTo(t, func(s *grpc.Server) { pb.RegisterBankServer(s, b) }, opts...)
}

// listenTo is listen for other services.
func listenTo(t testing.TB, register func(*grpc.Server), opts ...grpc.ServerOption) (addr string) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(append(opts, grpc.WaitForHandlers(true))...)
	register(server)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return listener.Addr().String()
}

// dial returns a client's connection.
func dial(t testing.TB, addr string, opts ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(addr, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// unary is a server option with this interceptor.
func unary(l *core.Locker, key grpclock.Key, opts ...core.Option) grpc.ServerOption {
	return grpc.ChainUnaryInterceptor(grpclock.UnaryServerInterceptor(l, key, opts...))
}

// streams is a server option with this interceptor.
func streams(l *core.Locker, key grpclock.Key, opts ...core.Option) grpc.ServerOption {
	return grpc.ChainStreamInterceptor(grpclock.StreamServerInterceptor(l, key, opts...))
}

// transferOf returns a request for an account.
func transferOf(id string) *pb.TransferRequest {
	return &pb.TransferRequest{Account: &pb.Account{Id: id}, Cents: 1}
}

// wantCode compares the code of an error.
func wantCode(t *testing.T, err error, want codes.Code) {
	t.Helper()
	if status.Code(err) != want {
		t.Errorf("%v, want %v", err, want)
	}
}

// reasonOf returns the reason in the ErrorInfo of an error.
func reasonOf(err error) string {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok && info.GetDomain() == "reqlock" {
			return info.GetReason()
		}
	}
	return ""
}
