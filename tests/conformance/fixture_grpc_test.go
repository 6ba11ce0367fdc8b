package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/reqlock/reqlock/core"
)

// A grpcServer is a client of a gRPC service on a real connection.
type grpcServer struct {
	pb.TestServiceClient
	kind callKind
	addr string
	conn *grpc.ClientConn
}

// A callKind is the kind of method that a request calls.
type callKind int

const (
	unaryCall    callKind = iota // UnaryCall
	serverStream                 // StreamingOutputCall
	bidiStream                   // FullDuplexCall, with one message of the client
)

// listenGRPC serves until the end of the test, and returns a client.
func listenGRPC(t *testing.T, grpcService pb.TestServiceServer, kind callKind, options ...grpc.ServerOption) server {
	t.Helper()
	return listenServices(t, kind, func(s *grpc.Server) { pb.RegisterTestServiceServer(s, grpcService) }, options...)
}

// listenServices is listenGRPC for the services that register registers.
func listenServices(t *testing.T, kind callKind, register func(*grpc.Server), options ...grpc.ServerOption) grpcServer {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(append(options, grpc.WaitForHandlers(true))...)
	register(s)
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	t.Cleanup(func() {
		s.Stop()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return grpcServer{pb.NewTestServiceClient(conn), kind, listener.Addr().String(), conn}
}

// outgoing returns the context and the message of a request. The keys are metadata. The body
// is a text field of a message inside the message.
func outgoing(ctx context.Context, r request) (context.Context, *pb.EchoStatus) {
	md := metadata.MD{"x-key": r.keys, "idempotency-key": r.idempotencyKeys}
	if r.second != "" {
		md.Set("x-second", r.second)
	}
	return metadata.NewOutgoingContext(ctx, md), &pb.EchoStatus{Message: r.body}
}

func (s grpcServer) send(ctx context.Context, r request) answer {
	if s.kind != unaryCall {
		return s.open(ctx, r).rest()
	}
	ctx, body := outgoing(ctx, r)
	var header, trailer metadata.MD
	reply, err := s.UnaryCall(ctx, &pb.SimpleRequest{ResponseStatus: body}, grpc.Header(&header), grpc.Trailer(&trailer))
	return answerOf(reply.GetUsername(), err, header, trailer)
}

func (s grpcServer) open(ctx context.Context, r request) stream {
	ctx, body := outgoing(ctx, r)
	m := &pb.StreamingOutputCallRequest{ResponseStatus: body}
	if s.kind == serverStream {
		pieces, err := s.StreamingOutputCall(ctx, m)
		return &grpcStream{pieces, err}
	}
	both, err := s.FullDuplexCall(ctx)
	if err != nil {
		return &grpcStream{nil, err}
	}
	if err = both.Send(m); errors.Is(err, io.EOF) {
		err = nil // the server has ended the stream, and Recv returns the reason
	}
	return &grpcStream{both, errors.Join(err, both.CloseSend())}
}

// A grpcStream is the client's side of a stream. Its pieces are messages.
type grpcStream struct {
	pieces interface {
		grpc.ClientStream
		Recv() (*pb.StreamingOutputCallResponse, error)
	}
	err error
}

func (s *grpcStream) next() (string, error) {
	if s.err != nil {
		return "", s.err
	}
	piece, err := s.pieces.Recv()
	s.err = err
	return string(piece.GetPayload().GetBody()), err
}

func (s *grpcStream) rest() answer {
	var text strings.Builder
	for s.err == nil {
		piece, _ := s.next()
		text.WriteString(piece)
	}
	if s.pieces == nil {
		return answerOf("", s.err)
	}
	header, _ := s.pieces.Header() // its error is the stream's
	if errors.Is(s.err, io.EOF) {
		s.err = nil
	}
	return answerOf(text.String(), s.err, header, s.pieces.Trailer())
}

// answerOf reads a status and its details.
func answerOf(text string, err error, meta ...metadata.MD) answer {
	s := status.Convert(err)
	got := answer{ok: err == nil, text: text, raw: text + s.Proto().String()}
	for _, md := range meta {
		for name, values := range md {
			got.raw += name + strings.Join(values, " ")
		}
	}
	got.status = int(s.Code())
	got.pushback = strings.Join(metadata.Join(meta...)["grpc-retry-pushback-ms"], " ")
	for _, detail := range s.Details() {
		switch detail := detail.(type) {
		case *errdetails.ErrorInfo:
			if detail.GetDomain() == "reqlock" {
				got.code, got.first = detail.GetReason(), detail.GetMetadata()["first"]
			}
		case *errdetails.RetryInfo:
			got.retryAfter = detail.GetRetryDelay().AsDuration()
		}
	}
	return got
}

// grpcRow returns an outcome as the status with details and the trailer show it.
func grpcRow(o core.Refusal) outcome {
	row := outcome{status: int(o.GRPC), code: strings.ToUpper(o.Code), retryAfter: o.RetryAfter, pushback: "-1"}
	if o.RetryAfter > 0 {
		row.pushback = fmt.Sprint(o.RetryAfter.Milliseconds())
	}
	return row
}

// GRPCStatus is the method by which an error states its status to grpclock.
func (forbidden) GRPCStatus() *status.Status {
	return status.New(codes.PermissionDenied, "not allowed")
}
