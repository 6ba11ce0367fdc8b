package answer_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/answer"
)

// neverMetadata are names of metadata that is never replayed.
var neverMetadata = []string{
	"grpc-status", "grpc-message", "grpc-status-details-bin", "grpc-encoding", "grpc-accept-encoding", "grpc-timeout",
	"grpc-message-type", "grpc-retry-pushback-ms", "grpc-previous-rpc-attempts", "grpc-trace-bin", "grpc-tags-bin",
	"content-type", "te", "user-agent", "date", "traceparent", "tracestate", "x-request-id", "authorization",
	"set-cookie", ":path", ":status", "idempotent-replayed", "", "a b", "x-\xff", "set-coo\u212aie",
}

// otherMetadata is replayed: it belongs to the application.
var otherMetadata = []string{
	"x-number", "x-number-bin", "location", "etag", "retry-after", "cache-control", "x-ratelimit-remaining", "a_b.c-d",
	"grpcx", "user", "content",
}

func TestMetadata(t *testing.T) {
	t.Parallel()
	for _, name := range slices.Concat(neverMetadata, otherMetadata) {
		want := md{}
		if slices.Contains(otherMetadata, name) {
			want = md{name: {"v", "w"}}
		}
		for _, spelling := range spellings(name) {
			if got := answer.Metadata(md{spelling: {"v", "w"}}); !reflect.DeepEqual(got, want) {
				t.Errorf("%q: %v, want %v", spelling, got, want)
			}
			if answer.MetadataNeverReplayed(spelling) != (len(want) == 0) {
				t.Errorf("%q: never replayed is %v", spelling, len(want) != 0)
			}
		}
	}
}

// Metadata with the name of a header that is NeverReplayed is not replayed.
func TestMetadataIsNoWayAroundTheFilter(t *testing.T) {
	t.Parallel()
	for _, name := range never {
		if !answer.MetadataNeverReplayed(strings.ToLower(name)) {
			t.Errorf("%q is replayed", name)
		}
	}
}

// Two spellings of one name are merged, in a fixed order. A name without values is left
// out. The result is a copy.
func TestMetadataMergesAndCopies(t *testing.T) {
	t.Parallel()
	given := md{"x-a": {"4"}, "X-A": {"1"}, "X-a": {"2", "3"}, "x-b": nil, "x-c": {""}}
	for range 20 {
		got := answer.Metadata(given)
		if want := (md{"x-a": {"1", "2", "3", "4"}, "x-c": {""}}); !reflect.DeepEqual(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
		got["x-c"][0] = "changed"
		if given["x-c"][0] != "" {
			t.Fatal("the handler's metadata has changed")
		}
	}
}
