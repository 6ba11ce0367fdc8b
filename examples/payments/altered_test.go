package main

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	pb "github.com/reqlock/reqlock/examples/bankpb"
)

// A wrapper is a middleware of net/http.
type wrapper = func(http.Handler) http.Handler

// altered changes the answers of a middleware.
func altered(inside wrapper, alter func(*httptest.ResponseRecorder)) wrapper {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			answer := httptest.NewRecorder()
			inside(next).ServeHTTP(answer, r)
			alter(answer)
			maps.Copy(w.Header(), answer.Header())
			w.WriteHeader(answer.Code)
			_, _ = answer.Body.WriteTo(w)
		})
	}
}

// ranTwice runs each request behind a middleware twice.
func ranTwice(inside wrapper) wrapper {
	return func(next http.Handler) http.Handler {
		return inside(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			for _, w := range []http.ResponseWriter{httptest.NewRecorder(), w} {
				r.Body = io.NopCloser(bytes.NewReader(body))
				next.ServeHTTP(w, r)
			}
		}))
	}
}

// A headerHeld is the transport stream of a call that keeps the header.
type headerHeld struct {
	grpc.ServerTransportStream
	header metadata.MD
}

func (h *headerHeld) SetHeader(header metadata.MD) error {
	h.header = metadata.Join(h.header, header)
	return nil
}

// alteredCall changes the answers of an interceptor.
func alteredCall(
	inside grpc.UnaryServerInterceptor, alter func(header metadata.MD, reply *pb.TransferReply),
) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, m any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		held := &headerHeld{ServerTransportStream: grpc.ServerTransportStreamFromContext(ctx)}
		reply, err := inside(grpc.NewContextWithServerTransportStream(ctx, held), m, info, next)
		if transferred, ok := reply.(*pb.TransferReply); ok {
			alter(held.header, transferred)
		}
		_ = grpc.SetHeader(ctx, held.header)
		return reply, err
	}
}

// ranTwiceCall runs each call behind an interceptor twice.
func ranTwiceCall(inside grpc.UnaryServerInterceptor) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, m any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		return inside(ctx, m, info, func(ctx context.Context, m any) (any, error) {
			if reply, err := next(ctx, m); err != nil {
				return reply, err
			}
			return next(ctx, m)
		})
	}
}
