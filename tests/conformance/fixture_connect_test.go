package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	pb "google.golang.org/grpc/interop/grpc_testing"
)

// A connectServer is a client of a Connect service on a real connection.
type connectServer struct {
	kind  callKind
	unary *connect.Client[pb.SimpleRequest, pb.SimpleResponse]
	reads *connect.Client[pb.SimpleRequest, pb.SimpleResponse] // of a method without side effects
	piece *connect.Client[pb.StreamingOutputCallRequest, pb.StreamingOutputCallResponse]
}

// listenConnect serves until the end of the test, and returns a client.
func listenConnect(t *testing.T, h http.Handler, kind callKind, protocol connect.ClientOption) server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(s.Close)
	transport := &http.Transport{Protocols: s.Config.Protocols}
	t.Cleanup(transport.CloseIdleConnections)
	over := &http.Client{Transport: transport}
	pieces := pb.TestService_StreamingOutputCall_FullMethodName
	if kind == bidiStream {
		pieces = pb.TestService_FullDuplexCall_FullMethodName
	}
	return connectServer{
		kind:  kind,
		unary: connect.NewClient[pb.SimpleRequest, pb.SimpleResponse](over, s.URL+pb.TestService_UnaryCall_FullMethodName, protocol),
		reads: connect.NewClient[pb.SimpleRequest, pb.SimpleResponse](over, s.URL+pb.TestService_CacheableUnaryCall_FullMethodName,
			protocol, connect.WithHTTPGet(), connect.WithIdempotency(connect.IdempotencyNoSideEffects)),
		piece: connect.NewClient[pb.StreamingOutputCallRequest, pb.StreamingOutputCallResponse](over, s.URL+pieces, protocol),
	}
}

// put sets the keys of a request.
func put(header http.Header, r request) *pb.EchoStatus {
	header["X-Key"], header["Idempotency-Key"] = r.keys, r.idempotencyKeys
	if r.second != "" {
		header.Set("X-Second", r.second)
	}
	return &pb.EchoStatus{Message: r.body}
}

func (s connectServer) send(ctx context.Context, r request) answer {
	if s.kind != unaryCall {
		return s.open(ctx, r).rest()
	}
	m := connect.NewRequest(&pb.SimpleRequest{})
	m.Msg.ResponseStatus = put(m.Header(), r)
	client := s.unary
	if r.reads {
		client = s.reads
	}
	reply, err := client.CallUnary(ctx, m)
	if err != nil {
		return connectAnswer("", err)
	}
	return connectAnswer(reply.Msg.GetUsername(), nil, reply.Header(), reply.Trailer())
}

func (s connectServer) open(ctx context.Context, r request) stream {
	if s.kind == serverStream {
		m := connect.NewRequest(&pb.StreamingOutputCallRequest{})
		m.Msg.ResponseStatus = put(m.Header(), r)
		pieces, err := s.piece.CallServerStream(ctx, m)
		if err != nil {
			return &connectStream{err: err}
		}
		return &connectStream{receive: func() (*pb.StreamingOutputCallResponse, error) {
			if pieces.Receive() {
				return pieces.Msg(), nil
			}
			if err := pieces.Err(); err != nil {
				return nil, err
			}
			return nil, io.EOF
		}, end: pieces.Close}
	}
	both := s.piece.CallBidiStream(ctx)
	m := &pb.StreamingOutputCallRequest{ResponseStatus: put(both.RequestHeader(), r)}
	err := both.Send(m)
	if errors.Is(err, io.EOF) {
		err = nil // the server has ended the stream, and Receive returns the reason
	}
	return &connectStream{receive: both.Receive, end: both.CloseResponse, err: errors.Join(err, both.CloseRequest())}
}

// A connectStream is the client's side of a stream. Its pieces are messages.
type connectStream struct {
	receive func() (*pb.StreamingOutputCallResponse, error)
	end     func() error
	err     error
}

func (s *connectStream) next() (string, error) {
	if s.err != nil {
		return "", s.err
	}
	piece, err := s.receive()
	s.err = err
	return string(piece.GetPayload().GetBody()), err
}

func (s *connectStream) rest() answer {
	var text strings.Builder
	for s.err == nil {
		piece, _ := s.next()
		text.WriteString(piece)
	}
	if s.end != nil {
		_ = s.end()
	}
	if errors.Is(s.err, io.EOF) {
		s.err = nil
	}
	return connectAnswer(text.String(), s.err)
}

// connectAnswer reads an error, its details and its metadata.
func connectAnswer(text string, err error, meta ...http.Header) answer {
	got := answer{ok: err == nil, text: text}
	var own *connect.Error
	if err != nil {
		got.status = int(connect.CodeOf(err))
		if got.status == int(connect.CodeInternal) && !connect.IsWireError(err) {
			got.err = err // the connection broke
		}
		if errors.As(err, &own) {
			meta = append(meta, own.Meta())
			for _, detail := range own.Details() {
				readDetail(&got, detail)
			}
		}
	}
	got.raw = fmt.Sprint(text, err, meta)
	if own != nil {
		got.pushback = strings.Join(own.Meta()["Grpc-Retry-Pushback-Ms"], " ")
	}
	return got
}

// readDetail reads one detail of an error.
func readDetail(into *answer, detail *connect.ErrorDetail) {
	switch m, _ := detail.Value(); m := m.(type) {
	case *errdetails.ErrorInfo:
		if m.GetDomain() == "reqlock" {
			into.code, into.first = m.GetReason(), m.GetMetadata()["first"]
		}
	case *errdetails.RetryInfo:
		into.retryAfter = m.GetRetryDelay().AsDuration().Round(time.Microsecond)
	}
}

// As is the method by which an error of a key states its code to connectlock.
func (forbidden) As(target any) bool {
	own, ok := target.(**connect.Error)
	if ok {
		*own = connect.NewError(connect.CodePermissionDenied, errors.New("not allowed"))
	}
	return ok
}
