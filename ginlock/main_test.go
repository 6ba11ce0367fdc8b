package ginlock_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/ginlock"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) {
	gin.SetMode(gin.TestMode)
	suite.Main(m)
}

// theKey is the key of requests to which a test gives no other.
const theKey = "account-secret"

// literal locks theKey.
var literal = ginlock.Literal(theKey)

// held reports whether theKey is locked.
func held(t *testing.T, locks *locktest.Locks) bool {
	t.Helper()
	lease, err := locks.TryLock(t.Context(), theKey)
	if err == nil {
		_ = lease.Release(t.Context())
	} else if !errors.Is(err, core.ErrBusy) {
		t.Errorf("TryLock: %v", err)
	}
	return err != nil
}

// unusedLocker returns a Locker for tests that do not get as far as Redis.
func unusedLocker(t *testing.T) *core.Locker {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	t.Cleanup(func() { _ = rdb.Close() })
	return core.Must(core.New(rdb))
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

// call sends a request straight to a handler.
func call(t *testing.T, h http.Handler, method, target string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, target, nil))
	return w
}

// newServer serves a handler on real connections.
func newServer(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server
}

// send sends a request to a server, and returns the status and the body of the
// answer; the status is 0 if the connection broke.
func send(t *testing.T, server *httptest.Server, method, path, contentType, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", contentType)
	answer, err := server.Client().Do(r)
	if err != nil {
		return 0, ""
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Errorf("reading the answer: %v", err)
	}
	return answer.StatusCode, string(text)
}

// mustNotRun is the handler of requests that are refused.
func mustNotRun(t *testing.T) gin.HandlerFunc {
	t.Helper()
	return func(*gin.Context) { t.Error("the handler has run") }
}

// ok is a handler that answers.
func ok(c *gin.Context) { c.String(http.StatusOK, "done") }

// checkProblem fails the test if an answer is not one whole problem document.
func checkProblem(t *testing.T, w *httptest.ResponseRecorder, status int, code string) {
	t.Helper()
	var problem struct {
		Status int
		Code   string
	}
	err := json.Unmarshal(w.Body.Bytes(), &problem)
	if err != nil || w.Code != status || problem.Status != status || problem.Code != code ||
		w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("%d %v %s, want %d %s (%v)", w.Code, w.Header(), w.Body, status, code, err)
	}
}
