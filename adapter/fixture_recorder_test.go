package adapter

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/reqlock/reqlock/internal/answer"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// serve serves a handler on real connections, without logs.
func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Start()
	t.Cleanup(server.Close)
	return server
}

// plenty is a limit of records that is longer than any answer of these tests.
const plenty = 1 << 20

// recording runs a handler on a Recorder, and then sends the recorded answer, as an
// Exchange does.
func recording(h http.HandlerFunc, limit int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		rec := newRecorder(w, answer.Filter{}, limit)
		h(rec, r)
		rec.close()
		rec.send()
	}
}
