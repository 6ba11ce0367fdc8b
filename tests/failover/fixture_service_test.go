package failover

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/nethttplock"
)

// The headers of a request, on both frameworks.
const (
	lockHeader       = "lock-key"
	idempotentHeader = "idempotency-key"
	requestHeader    = "request"
)

// A service is a process that serves HTTP and gRPC, with clients.
type service struct {
	*process
	pb.UnimplementedTestServiceServer
	ledger *ledger
	web    *httptest.Server
	conn   *grpc.ClientConn
}

// newService serves until the end of the test. Requests wait this long for a lock.
func newService(t *testing.T, p *process, l *ledger, wait time.Duration) *service {
	t.Helper()
	s := &service{process: p, ledger: l}
	bounded := core.WithWait(wait)

	mux := http.NewServeMux()
	mux.Handle("POST /lock", nethttplock.Middleware(p.locks, nethttplock.Header(lockHeader), bounded)(http.HandlerFunc(s.serveHTTP)))
	mux.Handle("POST /idempotent", nethttplock.Idempotent(p.locks, nethttplock.IdempotencyKey(), bounded)(http.HandlerFunc(s.serveHTTP)))
	s.web = httptest.NewServer(mux)
	t.Cleanup(s.web.Close)

	locked := grpclock.UnaryServerInterceptor(p.locks, grpclock.Metadata(lockHeader), bounded)
	idempotent := grpclock.IdempotentUnaryServerInterceptor(p.locks, grpclock.IdempotencyKey(), bounded)
	server := grpc.NewServer(grpc.WaitForHandlers(true), grpc.UnaryInterceptor(
		func(ctx context.Context, r any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			if info.FullMethod == pb.TestService_CacheableUnaryCall_FullMethodName {
				return idempotent(ctx, r, info, next)
			}
			return locked(ctx, r, info, next)
		}))
	pb.RegisterTestServiceServer(server, s)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	s.conn, err = grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableRetry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.conn.Close()
		server.GracefulStop()
		if err := suite.Receive(t, "the server ends", served); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *service) serveHTTP(w http.ResponseWriter, r *http.Request) {
	key := r.Header.Get(lockHeader) + r.Header.Get(idempotentHeader)
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, s.ledger.handle(r.Context(), key, r.Header.Get(requestHeader)))
}

func (s *service) UnaryCall(ctx context.Context, _ *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	header := func(name string) string { return strings.Join(metadata.ValueFromIncomingContext(ctx, name), " ") }
	return &pb.SimpleResponse{Username: s.ledger.handle(ctx, header(lockHeader)+header(idempotentHeader), header(requestHeader))}, nil
}

func (s *service) CacheableUnaryCall(ctx context.Context, r *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	return s.UnaryCall(ctx, r)
}

func (q request) header() string {
	if q.isIdempotent {
		return idempotentHeader
	}
	return lockHeader
}

func (s *service) sendHTTP(ctx context.Context, q request) (a answer) {
	path := "/lock"
	if q.isIdempotent {
		path = "/idempotent"
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.web.URL+path, http.NoBody)
	if err != nil {
		return answer{err: err}
	}
	r.Header.Set(q.header(), q.key)
	r.Header.Set(requestHeader, q.id)
	got, err := s.web.Client().Do(r)
	if err != nil {
		return answer{err: err}
	}
	defer func() { _ = got.Body.Close() }()
	body, err := io.ReadAll(got.Body)
	a = answer{
		status: got.StatusCode, body: string(body), err: err,
		isReplayed: got.Header.Get("Idempotent-Replayed") == "true",
	}
	if strings.HasPrefix(got.Header.Get("Content-Type"), "application/problem+json") {
		var problem struct{ Code string }
		a.err = errors.Join(err, json.Unmarshal(body, &problem))
		a.code = problem.Code
	}
	return a
}

func (s *service) sendGRPC(ctx context.Context, q request) answer {
	method := pb.TestService_UnaryCall_FullMethodName
	if q.isIdempotent {
		method = pb.TestService_CacheableUnaryCall_FullMethodName
	}
	ctx = metadata.AppendToOutgoingContext(ctx, q.header(), q.key, requestHeader, q.id)
	var got pb.SimpleResponse
	var header metadata.MD
	err := s.conn.Invoke(ctx, method, &pb.SimpleRequest{}, &got, grpc.Header(&header))
	result := status.Convert(err)
	a := answer{
		isGRPC: true, status: int(result.Code()), code: reasonOf(result), body: got.GetUsername(),
		isReplayed: len(header.Get("idempotent-replayed")) > 0,
	}
	if a.code == "" && result.Code() != codes.OK {
		a.err = err // of the connection, not of the service
	}
	return a
}

func (s *service) send(ctx context.Context, overGRPC bool, q request) answer {
	if overGRPC {
		return s.sendGRPC(ctx, q)
	}
	return s.sendHTTP(ctx, q)
}

func (q request) lockKey(overGRPC bool) string {
	switch {
	case !q.isIdempotent:
		return q.key
	case overGRPC:
		return "i:" + adapter.Must(core.EndpointKey("", pb.TestService_CacheableUnaryCall_FullMethodName, q.key))
	default:
		return "i:" + adapter.Must(core.EndpointKey(http.MethodPost, "POST /idempotent", q.key))
	}
}

// reasonOf returns the code of an outcome, or "" for any other status.
func reasonOf(s *status.Status) string {
	for _, detail := range s.Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			return strings.ToLower(info.GetReason())
		}
	}
	return ""
}
