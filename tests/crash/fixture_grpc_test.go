package crash

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/grpclock"
	stored "github.com/reqlock/reqlock/internal/answer"
)

// methods are the routes of the service on gRPC.
var methods = map[string]string{
	reject: pb.TestService_UnaryCall_FullMethodName,
	rerun:  pb.TestService_CacheableUnaryCall_FullMethodName,
}

// A grpcService is the service on gRPC. Both methods take payments.
type grpcService struct {
	pb.UnimplementedTestServiceServer
	*service
}

func (s grpcService) CacheableUnaryCall(ctx context.Context, r *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	return s.UnaryCall(ctx, r)
}

func (s grpcService) UnaryCall(ctx context.Context, r *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	attempt, _ := core.AttemptFromContext(ctx)
	key := strings.Join(metadata.ValueFromIncomingContext(ctx, "idempotency-key"), " ")
	made, err := s.pay(ctx, attempt, key, r.GetPayload().GetBody())
	switch {
	case errors.Is(err, errTryAgain):
		return nil, status.Error(codes.Aborted, err.Error())
	case err != nil:
		return nil, status.Error(codes.Internal, err.Error())
	}
	text, err := json.Marshal(made)
	if err != nil {
		return nil, err
	}
	err = grpc.SetHeader(ctx, metadata.Pairs("location", made.Charge))
	return &pb.SimpleResponse{Username: string(text)}, err
}

func serveGRPC(s *service, l net.Listener) (stop func(context.Context)) {
	type pair struct{ nowait, waits grpc.UnaryServerInterceptor }
	interceptors := map[string]pair{}
	for name, policy := range policies {
		policy := core.WithRerunUnknown(policy)
		interceptors[methods[name]] = pair{
			grpclock.IdempotentUnaryServerInterceptor(s.locks, grpclock.IdempotencyKey(), policy),
			grpclock.IdempotentUnaryServerInterceptor(s.locks, grpclock.IdempotencyKey(), policy, core.WithWait(s.Wait)),
		}
	}
	server := grpc.NewServer(grpc.WaitForHandlers(true), grpc.UnaryInterceptor(
		func(ctx context.Context, r any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			if len(metadata.ValueFromIncomingContext(ctx, nowaitHeader)) > 0 {
				return interceptors[info.FullMethod].nowait(ctx, r, info, next)
			}
			return interceptors[info.FullMethod].waits(ctx, r, info, next)
		}))
	pb.RegisterTestServiceServer(server, grpcService{service: s})
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l)
	}()
	return func(context.Context) {
		server.GracefulStop()
		<-done
	}
}

func askGRPC(ctx context.Context, addr string, q request) (a answer, err error) {
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableRetry())
	if err != nil {
		return a, err
	}
	defer func() { _ = conn.Close() }()
	text, err := json.Marshal(payment{q.extra})
	if err != nil {
		return a, err
	}
	md := metadata.Pairs("idempotency-key", q.key)
	if q.nowait {
		md.Set(nowaitHeader, "1")
	}
	var got pb.SimpleResponse
	var header metadata.MD
	err = conn.Invoke(metadata.NewOutgoingContext(ctx, md), methods[q.policy],
		&pb.SimpleRequest{Payload: &pb.Payload{Body: text}}, &got, grpc.Header(&header))
	converted := status.Convert(err)
	a = answer{
		Status: int(converted.Code()), Code: reasonOf(converted), Location: strings.Join(header.Get("location"), " "),
		Body: got.GetUsername(), Replayed: len(header.Get("idempotent-replayed")) > 0, Fine: err == nil,
	}
	if a.Code != "" || converted.Code() == codes.Aborted {
		err = nil // the service has answered; the connection is in order
	}
	return a, err
}

// reasonOf returns the code of a refusal. It returns "" if the status has no such code.
func reasonOf(s *status.Status) string {
	for _, detail := range s.Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			return strings.ToLower(info.GetReason())
		}
	}
	return ""
}

func decodeGRPC(text string) (answer, error) {
	kept, err := stored.DecodeReply([]byte(text))
	if err != nil {
		return answer{}, err
	}
	var message pb.SimpleResponse
	err = proto.Unmarshal(kept.Message, &message)
	return answer{
		Status: int(kept.Code), Location: strings.Join(kept.Header["location"], " "), Body: message.GetUsername(),
	}, err
}
