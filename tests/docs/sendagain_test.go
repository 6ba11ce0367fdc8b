package docs_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
	"github.com/reqlock/reqlock/nethttplock"
)

// The answers of all outcomes say whether the request is sent again, by the rule of docs/errors.md.
func TestAnswersSayWhetherToSendAgain(t *testing.T) {
	all := refusals(t)
	all["of another package"] = errors.New("x")
	for name, err := range all {
		outcome, _ := core.OutcomeOf(err)
		header, pushback := "", "-1"
		if outcome.RetryAfter > 0 {
			header, pushback = "1", "1000"
		}
		w := httptest.NewRecorder()
		nethttplock.WriteError(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil), err)
		if got := w.Header().Get("Retry-After"); got != header {
			t.Errorf("%s: Retry-After %q, want %q", name, got, header)
		}
		sent := grpclock.StatusOf(err)
		isRetryInfo := func(detail any) bool { return reflect.TypeOf(detail) == reflect.TypeFor[*errdetails.RetryInfo]() }
		if slices.ContainsFunc(sent.Details(), isRetryInfo) != (outcome.RetryAfter > 0) {
			t.Errorf("%s: details %v", name, sent.Details())
		}
		call := &trailers{}
		refuse := grpclock.UnaryServerInterceptor(adaptertest.UnusedLocker(t), grpclock.Metadata("absent"),
			grpclock.WithErrorHandler(func(*grpclock.Call, error) error { return sent.Err() }))
		_, _ = refuse(grpc.NewContextWithServerTransportStream(t.Context(), call), nil, &grpc.UnaryServerInfo{}, nil)
		if got := call.md["grpc-retry-pushback-ms"]; !slices.Equal(got, []string{pushback}) {
			t.Errorf("%s: grpc-retry-pushback-ms %q, want %q", name, got, pushback)
		}
	}
}

// trailers is the stream of a call, with the trailer that is set.
type trailers struct {
	grpc.ServerTransportStream
	md metadata.MD
}

func (t *trailers) SetTrailer(md metadata.MD) error {
	t.md = metadata.Join(t.md, md)
	return nil
}
