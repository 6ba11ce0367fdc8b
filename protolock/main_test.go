package protolock_test

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
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

// accountOf reads the account of all the requests.
var accountOf = grpclock.Message(func(m interface{ GetAccount() *pb.Account }) string { return m.GetAccount().GetId() })

// within returns a context with a deadline for the calls of a test.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// bank is a server. A test sets the methods that it needs.
type bank struct {
	pb.UnimplementedBankServer
	transfer func(context.Context, *pb.TransferRequest) (*pb.TransferReply, error)
	deposit  func(depositServer) error // after the last message
}

type depositServer = grpc.ClientStreamingServer[pb.DepositRequest, pb.BalanceReply]

func (b *bank) Transfer(ctx context.Context, m *pb.TransferRequest) (*pb.TransferReply, error) {
	if b.transfer == nil {
		return &pb.TransferReply{}, nil
	}
	return b.transfer(ctx, m)
}

func (b *bank) Balance(context.Context, *pb.BalanceRequest) (*pb.BalanceReply, error) {
	return &pb.BalanceReply{}, nil
}

func (b *bank) Deposit(s depositServer) error {
	for {
		switch _, err := s.Recv(); {
		case errors.Is(err, io.EOF) && b.deposit != nil:
			return b.deposit(s)
		case errors.Is(err, io.EOF):
			return s.SendAndClose(&pb.BalanceReply{})
		case err != nil:
			return err
		}
	}
}

// connect starts a server on a real connection, and returns the connection of a client.
func connect(t *testing.T, register func(*grpc.Server), opts ...grpc.ServerOption) *grpc.ClientConn {
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
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// deposit sends one message of the stream for theKey, and returns the error of the call.
func deposit(ctx context.Context, client pb.BankClient) error {
	s, err := client.Deposit(ctx)
	if err != nil {
		return err
	}
	// io.EOF says that the server has ended the stream: CloseAndRecv says why.
	if err := s.Send(&pb.DepositRequest{Account: &pb.Account{Id: theKey}}); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	_, err = s.CloseAndRecv()
	return err
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

// warnings records the texts of Warned events.
type warnings struct {
	mu    sync.Mutex
	texts []string
}

func (w *warnings) observe(e core.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.Kind == core.Warned {
		w.texts = append(w.texts, e.Err.Error())
	}
}

// take returns the texts since the last call, in order of the alphabet.
func (w *warnings) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	texts := w.texts
	w.texts = nil
	slices.Sort(texts)
	return texts
}
