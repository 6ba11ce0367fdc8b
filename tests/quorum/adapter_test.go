package quorum

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/labstack/echo/v4"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/echolock"
	"github.com/reqlock/reqlock/ginlock"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/nethttplock"
)

// An adapter serves one route until the end of the test. A header names the key of the
// lock. serve returns a function that sends a request to the route.
type adapter struct {
	serve func(t *testing.T, locks *core.Locker, handle func(ctx context.Context)) (send func(key string) (answer, error))
	ok    answer
	busy  answer
}

var adapters = map[string]adapter{
	"nethttplock": overHTTP(func(locks *core.Locker, handle func(context.Context)) http.Handler {
		return nethttplock.Middleware(locks, nethttplock.Header(keyHeader))(
			http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				handle(r.Context())
				w.WriteHeader(http.StatusNoContent)
			}))
	}),
	"ginlock": overHTTP(func(locks *core.Locker, handle func(context.Context)) http.Handler {
		engine := gin.New()
		engine.POST("/", ginlock.Middleware(locks, ginlock.Header(keyHeader)), func(c *gin.Context) {
			handle(c.Request.Context())
			c.Status(http.StatusNoContent)
		})
		return engine
	}),
	"echolock": overHTTP(func(locks *core.Locker, handle func(context.Context)) http.Handler {
		e := echo.New()
		e.POST("/", func(c echo.Context) error {
			handle(c.Request().Context())
			return c.NoContent(http.StatusNoContent)
		}, echolock.Middleware(locks, echolock.Header(keyHeader)))
		return e
	}),
	"grpclock": {
		serve: serveGRPC,
		ok:    answer{status: int(codes.OK)},
		busy:  answer{status: int(codes.Aborted), retryAfter: "1s", code: "BUSY"},
	},
}

// overHTTP returns the adapter of an HTTP framework.
func overHTTP(handler func(*core.Locker, func(context.Context)) http.Handler) adapter {
	return adapter{
		serve: func(t *testing.T, locks *core.Locker, handle func(context.Context)) func(string) (answer, error) {
			t.Helper()
			web := httptest.NewServer(handler(locks, handle))
			t.Cleanup(web.Close)
			p := &process{web: web}
			return func(key string) (answer, error) { return p.post("/", "a client", key) }
		},
		ok:   answer{status: http.StatusNoContent},
		busy: answer{http.StatusConflict, "application/problem+json", "1", "busy"},
	}
}

// A grpcService is a service whose calls run the handler.
type grpcService struct {
	pb.UnimplementedTestServiceServer
	handle func(ctx context.Context)
}

func (c grpcService) UnaryCall(ctx context.Context, _ *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	c.handle(ctx)
	return &pb.SimpleResponse{}, nil
}

func serveGRPC(t *testing.T, locks *core.Locker, handle func(ctx context.Context)) func(key string) (answer, error) {
	t.Helper()
	server := grpc.NewServer(grpc.WaitForHandlers(true),
		grpc.UnaryInterceptor(grpclock.UnaryServerInterceptor(locks, grpclock.Metadata(keyHeader))))
	pb.RegisterTestServiceServer(server, grpcService{handle: handle})
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		server.GracefulStop()
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	client := pb.NewTestServiceClient(conn)
	return func(key string) (a answer, err error) {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_, err = client.UnaryCall(metadata.AppendToOutgoingContext(ctx, keyHeader, key), &pb.SimpleRequest{})
		got := status.Convert(err)
		a.status = int(got.Code())
		for _, detail := range got.Details() {
			switch detail := detail.(type) {
			case *errdetails.ErrorInfo:
				a.code = detail.GetReason()
			case *errdetails.RetryInfo:
				a.retryAfter = detail.GetRetryDelay().AsDuration().String()
			}
		}
		return a, nil // the answer contains the error
	}
}

// A request runs under the lock of the quorum. While another process holds the lock, the
// answer asks the client to try again.
func TestEachAdapterLocksAQuorum(t *testing.T) {
	t.Parallel()
	gin.SetMode(gin.TestMode) // without output
	d := newDeployment(t, 2)
	d.awaitAllVotes(t, "begin")
	for name, a := range adapters {
		t.Run(name, func(t *testing.T) {
			var ran atomic.Int32
			send := a.serve(t, d.processes[0].locks, func(ctx context.Context) {
				ran.Add(1)
				lease, ok := core.FromContext(ctx)
				if !ok || d.nodes.votes(t, name, lease.Token()) < majority {
					t.Error("the handler does not run under the lock")
				}
			})
			want := func(want answer, runs int32) {
				t.Helper()
				if got, err := send(name); err != nil || got != want || ran.Load() != runs {
					t.Errorf("answered %+v, %v, after %d runs; want %+v", got, err, ran.Load(), want)
				}
			}
			want(a.ok, 1)
			d.awaitFree(t, name)
			other := d.processes[1].hold(t, name)
			want(a.busy, 1)
			if err := other.release(); err != nil {
				t.Errorf("release: %v", err)
			}
			want(a.ok, 2)
		})
	}
}
