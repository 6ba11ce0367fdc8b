package nethttplock_test

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/nethttplock"
)

func TestMain(m *testing.M) { suite.Main(m) }

// theKey is the key of requests to which a test gives no other.
const theKey = "account-secret"

// theirToken is the token of another process that holds theKey.
const theirToken = "token-of-another"

// literal locks theKey.
var literal = nethttplock.Literal(theKey)

// patient lets a command take longer than by default: a busy machine is no fault
// of Redis.
var patient = core.WithCommandTimeout(2 * time.Second)

// newLocker returns a Locker on a real server, and a client that sees what is
// in there.
func newLocker(t *testing.T, opts ...core.Option) (*core.Locker, *redis.Client) {
	t.Helper()
	server := redistest.Start(t)
	locks := core.Must(core.New(server.Client(t), append([]core.Option{patient}, opts...)...))
	closeAfterwards(t, locks)
	return locks, server.Client(t)
}

// closeAfterwards closes a Locker when the test is over; all locks have to be
// free by then.
func closeAfterwards(t *testing.T, locks *core.Locker) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := locks.Close(ctx); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
}

// held reports whether theKey is locked in Redis.
func held(t *testing.T, rdb *redis.Client) bool {
	t.Helper()
	n, err := rdb.Exists(t.Context(), "reqlock:"+theKey).Result()
	if err != nil {
		t.Errorf("EXISTS: %v", err)
	}
	return n == 1
}

// hold locks theKey as another process would.
func hold(t *testing.T, rdb *redis.Client) {
	t.Helper()
	if err := rdb.SetArgs(t.Context(), "reqlock:"+theKey, theirToken, redis.SetArgs{Mode: "NX", TTL: time.Minute}).Err(); err != nil {
		t.Fatalf("SET NX: %v", err)
	}
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timed out waiting until %s", what)
		}
	}
}

// newServer serves a handler on a real connection, and keeps quiet about its
// panics.
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

// answer is what a client gets; its status is 0 if the connection broke.
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
