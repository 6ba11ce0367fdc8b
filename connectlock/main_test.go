package connectlock_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/reqlock/reqlock/connectlock"
	"github.com/reqlock/reqlock/core"
	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// theKey is the key of requests if a test gives no other.
const theKey = adaptertest.Key

// literal locks theKey.
var literal = connectlock.Literal(theKey)

// accountOf reads the account of all the requests.
var accountOf = connectlock.Message(func(m interface{ GetAccount() *pb.Account }) string { return m.GetAccount().GetId() })

// transferred is the specification of a call in a test without a server.
var transferred = connect.Spec{Procedure: pb.Bank_Transfer_FullMethodName}

// within returns a context with a deadline for the calls of a test.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

type (
	transferRequest = *connect.Request[pb.TransferRequest]
	transferReply   = *connect.Response[pb.TransferReply]
	watchStream     = *connect.ServerStream[pb.BalanceReply]
	depositStream   = *connect.ClientStream[pb.DepositRequest]
	batchStream     = *connect.BidiStream[pb.TransferRequest, pb.TransferReply]
)

// bank is a server. A test sets the methods that it needs.
type bank struct {
	transfer func(context.Context, transferRequest) (transferReply, error)
	watch    func(context.Context, *connect.Request[pb.BalanceRequest], watchStream) error
	deposit  func(context.Context, depositStream) (*connect.Response[pb.BalanceReply], error)
	batch    func(context.Context, batchStream) error

	service protoreflect.ServiceDescriptor // nil: that of bankpb
}

// handler returns the handler of the bank, as generated code makes it.
func (b *bank) handler(opts ...connect.HandlerOption) http.Handler {
	service := b.service
	if service == nil {
		service = bankService()
	}
	mux := http.NewServeMux()
	path := func(name string) string { return "/" + string(service.FullName()) + "/" + name }
	with := func(name protoreflect.Name) connect.HandlerOption {
		return connect.WithHandlerOptions(connect.WithSchema(service.Methods().ByName(name)), connect.WithHandlerOptions(opts...))
	}
	mux.Handle(path("Transfer"), connect.NewUnaryHandler(path("Transfer"), b.transfer, with("Transfer")))
	mux.Handle(path("Balance"), connect.NewUnaryHandler(path("Balance"),
		func(context.Context, *connect.Request[pb.BalanceRequest]) (*connect.Response[pb.BalanceReply], error) {
			return connect.NewResponse(&pb.BalanceReply{}), nil
		}, with("Balance"), connect.WithIdempotency(connect.IdempotencyNoSideEffects)))
	mux.Handle(path("Watch"), connect.NewServerStreamHandler(path("Watch"), b.watch, with("Watch")))
	mux.Handle(path("Deposit"), connect.NewClientStreamHandler(path("Deposit"), b.deposit, with("Deposit")))
	mux.Handle(path("Batch"), connect.NewBidiStreamHandler(path("Batch"), b.batch, with("Batch")))
	return mux
}

func bankService() protoreflect.ServiceDescriptor {
	return pb.File_bank_proto.Services().ByName("Bank")
}

// A client is a client of the bank.
type client struct {
	transfer *connect.Client[pb.TransferRequest, pb.TransferReply]
	balance  *connect.Client[pb.BalanceRequest, pb.BalanceReply]
	watch    *connect.Client[pb.BalanceRequest, pb.BalanceReply]
	deposit  *connect.Client[pb.DepositRequest, pb.BalanceReply]
	batch    *connect.Client[pb.TransferRequest, pb.TransferReply]
}

// protocols are all that a Connect handler serves.
var protocols = map[string]connect.ClientOption{
	"Connect": connect.WithClientOptions(), "gRPC": connect.WithGRPC(), "gRPC-Web": connect.WithGRPCWeb(),
}

// serve starts a server on a real connection, and returns a client of it.
func serve(t *testing.T, b *bank, opts ...connect.HandlerOption) client {
	t.Helper()
	return listen(t, b.handler(opts...))(connect.WithClientOptions())
}

// locked is the option of handlers with the interceptors.
func locked(interceptors ...connect.Interceptor) connect.HandlerOption {
	return connect.WithInterceptors(interceptors...)
}

// listen starts a server, and returns a function that makes clients of it.
func listen(t testing.TB, handler http.Handler) func(opts ...connect.ClientOption) client {
	t.Helper()
	return listenOver(t, handler, func(over http.RoundTripper) http.RoundTripper { return over })
}

// listenOver is listen for clients over another transport around the one of HTTP/2.
func listenOver(
	t testing.TB, handler http.Handler, around func(http.RoundTripper) http.RoundTripper,
) func(opts ...connect.ClientOption) client {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetHTTP1(true)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(transport.CloseIdleConnections)
	return func(opts ...connect.ClientOption) client {
		return clientOf(&http.Client{Transport: around(transport)}, server.URL, opts...)
	}
}

func clientOf(over *http.Client, url string, opts ...connect.ClientOption) client {
	service := url + "/reqlock.bank.v1.Bank/"
	return client{
		transfer: connect.NewClient[pb.TransferRequest, pb.TransferReply](over, service+"Transfer", opts...),
		balance:  connect.NewClient[pb.BalanceRequest, pb.BalanceReply](over, service+"Balance", opts...),
		watch:    connect.NewClient[pb.BalanceRequest, pb.BalanceReply](over, service+"Watch", opts...),
		deposit:  connect.NewClient[pb.DepositRequest, pb.BalanceReply](over, service+"Deposit", opts...),
		batch:    connect.NewClient[pb.TransferRequest, pb.TransferReply](over, service+"Batch", opts...),
	}
}

// transferOf returns a request for an account, with header names and values.
func transferOf(id string, header ...string) transferRequest {
	r := connect.NewRequest(&pb.TransferRequest{Account: &pb.Account{Id: id}, Cents: 1})
	for i := 0; i < len(header); i += 2 {
		r.Header().Add(header[i], header[i+1])
	}
	return r
}

// batchOf sends one message to the stream, and returns its reply, and the error with which it ends.
func batchOf(ctx context.Context, c client, id string) (reply *pb.TransferReply, err error) {
	s := c.batch.CallBidiStream(ctx)
	defer func() { _ = s.CloseResponse() }()
	_ = s.Send(transferOf(id).Msg) // Receive says why it fails
	_ = s.CloseRequest()
	return s.Receive()
}

// wantCode compares the code of an error; 0 is none.
func wantCode(t *testing.T, err error, want connect.Code) {
	t.Helper()
	if (err == nil) != (want == 0) || err != nil && connect.CodeOf(err) != want {
		t.Errorf("%v, want %v", err, want)
	}
}

// infoOf returns the details in an error of ErrorOf.
func infoOf(err error) (info *errdetails.ErrorInfo, retry *errdetails.RetryInfo) {
	var own *connect.Error
	if e, ok := err.(*connect.Error); ok { //nolint:errorlint // a client's
		own = e
	}
	if own == nil {
		return nil, nil
	}
	for _, detail := range own.Details() {
		switch m, _ := detail.Value(); m := m.(type) {
		case *errdetails.ErrorInfo:
			info = m
		case *errdetails.RetryInfo:
			retry = m
		}
	}
	return info, retry
}

// reasonOf returns the reason in the ErrorInfo of an error.
func reasonOf(err error) string {
	info, _ := infoOf(err)
	return info.GetReason()
}

// failing returns a key that fails.
func failing(err error) connectlock.Key {
	return core.KeyOf(func(*connectlock.Call) (string, error) { return "", err })
}
