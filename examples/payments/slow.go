package main

import (
	"context"
	"errors"
	"net/http"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A request can set the duration of its clearing, such as 3s, so that a person with
// two terminals can see the effect of a lock. This belongs to the demonstration and
// not to a service, so it wraps the services.

// slowest is the longest duration that a request can set.
const slowest = 30 * time.Second

var errSlow = errors.New("slow is a duration of at most 30s, such as 3s")

// slowKey is the context key of the duration.
type slowKey struct{}

// withSlow returns a context with the duration of the clearing, such as "3s", or
// without one if duration is empty.
func withSlow(ctx context.Context, duration string) (context.Context, error) {
	if duration == "" {
		return ctx, nil
	}
	pause, err := time.ParseDuration(duration)
	if err != nil || pause < 0 || pause > slowest {
		return ctx, errSlow
	}
	return context.WithValue(ctx, slowKey{}, pause), nil
}

// slowed returns a clearing that first waits for the duration that the request has
// set.
func slowed(clearing func(ctx context.Context, operation string) error) func(context.Context, string) error {
	return func(ctx context.Context, operation string) error {
		if pause, ok := ctx.Value(slowKey{}).(time.Duration); ok {
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return clearing(ctx, operation)
	}
}

// slow reads the query of an HTTP request, as in ?slow=3s.
func slow(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, err := withSlow(r.Context(), r.URL.Query().Get("slow"))
		if err != nil {
			reply(w, http.StatusBadRequest, map[string]any{"error": err.Error()})
			return
		}
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// slowCall reads the metadata of a gRPC call, as in "slow: 3s".
func slowCall(ctx context.Context, m any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	ctx, err := withSlow(ctx, firstOf(ctx, "slow"))
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	return next(ctx, m)
}
