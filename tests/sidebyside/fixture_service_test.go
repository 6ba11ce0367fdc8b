package sidebyside

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"google.golang.org/grpc"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/internal/testkit/subprocess"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/nethttplock"
)

func TestMain(m *testing.M) { suite.Main(m) }

// TestService is a process of either tree: the old tree gets a copy of this file.
func TestService(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Addr: subprocess.Orders[string](t)})
	locks := core.Must(core.New(rdb, append(referring(), core.WithObserver(observe))...))
	mux, handler := http.NewServeMux(), work(rdb)
	mux.Handle("POST /lock", nethttplock.Middleware(locks, account)(handler))
	mux.Handle("POST /wait", nethttplock.Middleware(locks, account, core.WithWait(time.Minute))(handler))
	mux.Handle("POST /permits", nethttplock.Middleware(locks, permits)(handler))
	mux.Handle("POST /shared", nethttplock.Middleware(locks, shared)(handler))
	mux.Handle("POST /fenced", nethttplock.Middleware(locks, account, core.WithFencing(true))(fenced(rdb)))
	mux.Handle("POST /kept", nethttplock.Middleware(locks, account, core.WithMinHold(time.Hour))(handler))
	mux.Handle("POST /detached", nethttplock.Middleware(locks, account, core.WithMaxHold(time.Minute))(detached(rdb)))
	payment := core.Join(nethttplock.Header("X-Account"), nethttplock.IdempotencyKey())
	mux.Handle("POST /pay", nethttplock.Idempotent(locks, payment)(handler))
	mux.Handle("POST /sealed", nethttplock.Idempotent(locks, payment, sealed...)(handler))
	mux.Handle("POST /once", nethttplock.Idempotent(locks, payment, once...)(handler))
	rpc := grpc.NewServer(grpc.UnaryInterceptor(
		grpclock.IdempotentUnaryServerInterceptor(locks, core.Join(grpclock.Metadata("x-account"), grpclock.IdempotencyKey()))))
	pb.RegisterTestServiceServer(rpc, calls{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor == 2 {
			rpc.ServeHTTP(w, r)
			return
		}
		account := metadata.Pairs("x-account", r.Header.Get("X-Account")) // for observe, as gRPC has it
		mux.ServeHTTP(w, r.WithContext(metadata.NewIncomingContext(r.Context(), account)))
	}))
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetHTTP1(true)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	subprocess.Report("serving", server.Listener.Addr().String())
	subprocess.AwaitStop()
	server.Close()
	rpc.Stop()
	if err := errors.Join(locks.Close(t.Context()), rdb.Close()); err != nil {
		t.Error(err)
	}
}

// work returns the handler of all routes. It waits for the test where the request says so.
func work(rdb *redis.Client) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if hold := r.Header.Get("X-Hold"); hold != "" {
			err = errors.Join(err, rdb.BLPop(r.Context(), time.Minute, hold).Err())
		}
		if attempt, ok := core.AttemptFromContext(r.Context()); ok && string(body) == "unknown" {
			attempt.Decide(endUnknown)
		}
		w.Header()["Link"] = []string{"</a>; rel=next", "</ü>"}
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, "\x00\xff%s%v", body, err)
	})
}

// fenced returns a handler that appends its fencing number to a list of its account.
func fenced(rdb *redis.Client) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lease, _ := leaseOf(r.Context())
		rdb.RPush(r.Context(), "fences of "+r.Header.Get("X-Account"), lease.Fence())
		w.WriteHeader(http.StatusCreated)
	})
}

type calls struct {
	pb.UnimplementedTestServiceServer
}

func (calls) UnaryCall(ctx context.Context, r *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	err := errors.Join(grpc.SetHeader(ctx, metadata.Pairs("link", "a", "link", "b")), grpc.SetTrailer(ctx, metadata.Pairs("sum", "3")))
	return &pb.SimpleResponse{Payload: r.GetPayload()}, err
}

// observe prints an event after the account of its request. Renewals depend on the speed of the machine.
func observe(e core.Event) {
	if of := metadata.ValueFromIncomingContext(e.Context(), "x-account"); len(of) > 0 && e.Kind != core.Renewed {
		_, _ = fmt.Println(of[0], e.Kind, e.Name, "shared:", e.Shared, "queued:", e.Queued, "repeated:", e.Repeated, renamed(e))
	}
}
