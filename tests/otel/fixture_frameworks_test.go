package oteltest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/labstack/echo/v4"
	"go.opentelemetry.io/contrib/instrumentation/github.com/gin-gonic/gin/otelgin"
	"go.opentelemetry.io/contrib/instrumentation/github.com/labstack/echo/otelecho"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/echolock"
	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/ginlock"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/nethttplock"
)

// traceparent is the header and the metadata with the trace of a client.
const traceparent = "traceparent"

// ran is how a request ended: its handler ran, or it was refused with 409 or ABORTED.
type ran bool

// A service is a server with one route, which locks "account:42". call sends a request with a
// traceparent. stop waits for the requests that run, and for their spans.
type service struct {
	call func(ctx context.Context, parent string) (ran, error)
	stop func()
}

// frameworks start a service of each framework, under the spans of its instrumentation. The handler
// calls work with its context. A request waits for its lock as wait says.
func frameworks() map[string]func(t *testing.T, o *observed, wait time.Duration, work func(context.Context)) service {
	return map[string]func(*testing.T, *observed, time.Duration, func(context.Context)) service{
		"otelhttp": startNetHTTP, "otelgin": startGin, "otelecho": startEcho,
		"otelgrpc": startGRPC(transfer), "otelgrpc, stream": startGRPC(deposit),
	}
}

func startNetHTTP(t *testing.T, o *observed, wait time.Duration, work func(context.Context)) service {
	lock := nethttplock.Middleware(o.locks, nethttplock.PathValue("id").Named("account"), core.WithWait(wait))
	mux := http.NewServeMux()
	mux.Handle("POST /accounts/{id}", lock(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { work(r.Context()) })))
	return startHTTP(t, otelhttp.NewHandler(mux, "bank", otelhttp.WithTracerProvider(o.tracers), otelhttp.WithPropagators(propagation.TraceContext{})))
}

func startGin(t *testing.T, o *observed, wait time.Duration, work func(context.Context)) service {
	router := gin.New()
	router.Use(otelgin.Middleware("bank", otelgin.WithTracerProvider(o.tracers), otelgin.WithPropagators(propagation.TraceContext{})))
	router.POST("/accounts/:id", ginlock.Middleware(o.locks, ginlock.Param("id").Named("account"), core.WithWait(wait)),
		func(c *gin.Context) { work(c.Request.Context()) })
	return startHTTP(t, router)
}

func startEcho(t *testing.T, o *observed, wait time.Duration, work func(context.Context)) service {
	router := echo.New()
	router.Use(otelecho.Middleware("bank", otelecho.WithTracerProvider(o.tracers), otelecho.WithPropagators(propagation.TraceContext{})))
	router.POST("/accounts/:id", func(c echo.Context) error {
		work(c.Request().Context())
		return c.NoContent(http.StatusOK)
	}, echolock.Middleware(o.locks, echolock.Param("id").Named("account"), core.WithWait(wait)))
	return startHTTP(t, router)
}

// startHTTP starts a server of the handler.
func startHTTP(t *testing.T, handler http.Handler) service {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	call := func(ctx context.Context, parent string) (ran, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/accounts/42", http.NoBody)
		if err != nil {
			return false, err
		}
		r.Header.Set(traceparent, parent)
		answer, err := server.Client().Do(r)
		if err != nil {
			return false, err
		}
		return answer.StatusCode == http.StatusOK, answer.Body.Close()
	}
	return service{call, server.Close}
}

// startGRPC starts a service to which send makes one kind of call.
func startGRPC(
	send func(context.Context, pb.BankClient) error,
) func(*testing.T, *observed, time.Duration, func(context.Context)) service {
	return func(t *testing.T, o *observed, wait time.Duration, work func(context.Context)) service {
		account := grpclock.Message(accountOf).Named("account")
		handler := &bank{run: func(ctx context.Context) error { work(ctx); return nil }}
		client, stop := startBank(t, handler,
			grpc.UnaryInterceptor(grpclock.UnaryServerInterceptor(o.locks, account, core.WithWait(wait))),
			grpc.StreamInterceptor(grpclock.StreamServerInterceptor(o.locks, account, core.WithWait(wait))),
			grpc.StatsHandler(otelgrpc.NewServerHandler(otelgrpc.WithTracerProvider(o.tracers), otelgrpc.WithPropagators(propagation.TraceContext{}))))
		call := func(ctx context.Context, parent string) (ran, error) {
			err := send(metadata.AppendToOutgoingContext(ctx, traceparent, parent), client)
			if status.Code(err) == codes.Aborted {
				return false, nil
			}
			return err == nil, err
		}
		return service{call, stop}
	}
}

// newClientSpan returns the span of a client, and its traceparent.
func newClientSpan(sampled bool) (trace.SpanContext, string) {
	config := trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, Remote: true}
	if sampled {
		config.TraceFlags = trace.FlagsSampled
	}
	span, header := trace.NewSpanContext(config), propagation.HeaderCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpanContext(context.Background(), span), header)
	return span, header.Get(traceparent)
}
