package request

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	health "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/tests/bench/internal/service"
)

// A grpcSite is a service on gRPC, and its client. The request is the health check of gRPC;
// the id is the name of the service.
type grpcSite struct {
	interceptor grpc.UnaryServerInterceptor // nil without a lock
	server      *grpc.Server
	conn        *grpc.ClientConn
	client      health.HealthClient
	served      chan error
}

// A healthService replies to health checks.
type healthService struct {
	health.UnimplementedHealthServer
}

// Check replies that the service is healthy.
func (healthService) Check(context.Context, *health.HealthCheckRequest) (*health.HealthCheckResponse, error) {
	return &health.HealthCheckResponse{Status: health.HealthCheckResponse_SERVING}, nil
}

func openGRPC(ctx context.Context, locks *core.Locker) (testService, error) {
	listener, err := service.Listen(ctx)
	if err != nil {
		return nil, err
	}
	s := &grpcSite{served: make(chan error, 1)}
	var options []grpc.ServerOption
	if locks != nil {
		s.interceptor = grpclock.UnaryServerInterceptor(locks, grpclock.Field[*health.HealthCheckRequest]("service"))
		options = append(options, grpc.UnaryInterceptor(s.interceptor))
	}
	s.server = grpc.NewServer(options...)
	health.RegisterHealthServer(s.server, healthService{})
	go func() { s.served <- s.server.Serve(listener) }()

	s.conn, err = grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		s.server.Stop()
		return nil, err
	}
	s.client = health.NewHealthClient(s.conn)
	return s, nil
}

func (s *grpcSite) call(ctx context.Context, id string) error {
	_, err := s.client.Check(ctx, &health.HealthCheckRequest{Service: id})
	return err
}

func (s *grpcSite) direct(ctx context.Context, id string) (func() error, error) {
	var (
		request = &health.HealthCheckRequest{Service: id}
		info    = &grpc.UnaryServerInfo{FullMethod: health.Health_Check_FullMethodName}
		handler = func(ctx context.Context, request any) (any, error) {
			return healthService{}.Check(ctx, request.(*health.HealthCheckRequest))
		}
	)
	return func() (err error) {
		if s.interceptor == nil {
			_, err = handler(ctx, request)
		} else {
			_, err = s.interceptor(ctx, request, info, handler)
		}
		return err
	}, nil
}

func (s *grpcSite) close() error {
	err := s.conn.Close()
	s.server.Stop()
	if served := <-s.served; err == nil {
		err = served
	}
	return err
}
