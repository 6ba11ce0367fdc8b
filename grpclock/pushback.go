package grpclock

import (
	"context"
	"errors"
	"strconv"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/reqlock/reqlock/adapter"
)

// pushbackTrailer is the trailer metadata by which a server tells the retry policy of a gRPC
// client when to retry (gRFC A6). A retry policy does not read a RetryInfo.
const pushbackTrailer = "grpc-retry-pushback-ms"

// noRetry is the value after which a client does not retry.
const noRetry = "-1"

// pushbackOf returns the value of the trailer for a status: the delay of its RetryInfo, or
// noRetry if it is a status of StatusOf without a RetryInfo. It is "" for any other status:
// the policy of the client decides by the code.
func pushbackOf(s *status.Status) (value string) {
	for _, detail := range s.Details() {
		switch detail := detail.(type) {
		case *errdetails.RetryInfo:
			return wholeMilliseconds(detail.GetRetryDelay().AsDuration())
		case *errdetails.ErrorInfo:
			if detail.GetDomain() == domain {
				value = noRetry
			}
		}
	}
	return value
}

// wholeMilliseconds rounds up, so that a client does not retry too early.
func wholeMilliseconds(d time.Duration) string {
	whole := d.Milliseconds()
	if d%time.Millisecond > 0 {
		whole++
	}
	return strconv.FormatInt(max(whole, 1), 10)
}

// pushBack sets the trailer, if a call ends with a refusal. Inside an idempotent call it does
// nothing: an interceptor in between may try again, and a trailer cannot be taken back.
// The IdempotentUnaryServerInterceptor calls pushBack when it knows how the call ends.
func pushBack(ctx context.Context, entry adapter.Entry, err error) {
	if err == nil || entry.IsInside() {
		return
	}
	var sent interface{ GRPCStatus() *status.Status } // as status.FromError finds it
	errors.As(err, &sent)
	r, ok := sent.(*refusal)
	if !ok || r.pushback == "" || hasPushback(ctx) {
		return
	}
	_ = grpc.SetTrailer(ctx, metadata.Pairs(pushbackTrailer, r.pushback)) // fails in a test without a server
}

// hasPushback reports whether a call has the trailer already, from an error handler or from a
// refusal before. gRPC would add a second value, and a client does not retry if there are two.
// The stream of gRPC has the method Trailer, which package grpc does not document.
func hasPushback(ctx context.Context) bool {
	stream, ok := grpc.ServerTransportStreamFromContext(ctx).(interface{ Trailer() metadata.MD })
	return ok && len(stream.Trailer()[pushbackTrailer]) > 0
}
