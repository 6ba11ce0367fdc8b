package ginlock_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/ginlock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) {
	gin.SetMode(gin.TestMode)
	suite.Main(m)
}

// theKey is the key of requests if a test gives no other.
const theKey = adaptertest.Key

// literal locks theKey.
var literal = ginlock.Literal(theKey)

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
