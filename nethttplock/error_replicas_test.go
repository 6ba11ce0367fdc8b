package nethttplock_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/nethttplock"
)

// WithReplicas refuses requests if the server has too few replicas.
func TestTooFewReplicasAreUnavailable(t *testing.T) {
	server := redistest.Reuse(t)
	server.Grant(redistest.ReplicaRights)
	locks := core.Must(core.New(server.Client(t), core.WithReplicas(1, 10*time.Millisecond)))
	adaptertest.CloseAfter(t, locks)
	run := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the handler runs") })
	for name, handler := range map[string]http.Handler{
		"a lock":           nethttplock.Middleware(locks, literal)(run),
		"a lock with wait": nethttplock.Middleware(locks, literal, core.WithWait(100*time.Millisecond))(run),
		"idempotent":       nethttplock.Idempotent(locks, literal)(run),
	} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil))
		if body := w.Body.String(); w.Code != http.StatusServiceUnavailable || !strings.Contains(body, `"code":"unavailable"`) ||
			w.Header().Get("Retry-After") != "1" || strings.Contains(body, "replicas") {
			t.Errorf("%s: %d, %s", name, w.Code, body)
		}
	}
}
