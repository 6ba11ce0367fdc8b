package nethttplock_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/nethttplock"
)

func TestMain(m *testing.M) { suite.Main(m) }

// theKey is the key of requests if a test gives no other.
const theKey = adaptertest.Key

// literal locks theKey.
var literal = nethttplock.Literal(theKey)

// newServer serves a handler on a real connection, and does not log panics.
func newServer(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Start()
	t.Cleanup(server.Close)
	return server
}

// newRequest returns a client's request.
func newRequest(t *testing.T, method, url string, body io.Reader) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// answer is the answer to a client; its status is 0 if the connection broke.
type answer struct {
	status int
	header http.Header
	body   string
}

// do sends a request and returns the answer.
func do(t *testing.T, server *httptest.Server, r *http.Request) answer {
	t.Helper()
	got, err := server.Client().Do(r)
	if err != nil {
		return answer{}
	}
	defer func() { _ = got.Body.Close() }()
	body, err := io.ReadAll(got.Body)
	if err != nil {
		t.Errorf("reading the answer: %v", err)
	}
	return answer{got.StatusCode, got.Header, string(body)}
}

// get sends a plain request and returns the status.
func get(t *testing.T, server *httptest.Server) int {
	t.Helper()
	return do(t, server, newRequest(t, http.MethodGet, server.URL, nil)).status
}
