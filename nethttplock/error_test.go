package nethttplock_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/nethttplock"
)

// The error of a body that is too large says which limit it exceeds, for the log and for the
// client.
func TestBodyTooLargeNamesItsLimit(t *testing.T) {
	t.Parallel()
	read := func(r *http.Request) (string, error) {
		body, err := adapter.ReadBody(r, 5)
		return string(body), err
	}
	for name, test := range map[string]struct {
		key    nethttplock.Key
		within int64 // the limit of http.MaxBytesReader; 0: none
		length int64 // -1: unknown
		want   string
		limit  int64
	}{
		"JSONField": {
			within(5, nethttplock.JSONField("a")), 0, 9, `reqlock: body too large: JSONField("a"): over 5 bytes: see core.WithMaxBody`, 5,
		},
		"without a length": {
			within(5, nethttplock.JSONField("a")), 0, -1, `reqlock: body too large: JSONField("a"): over 5 bytes: see core.WithMaxBody`, 5,
		},
		"Form": {
			within(5, nethttplock.Form("a")), 0, 9, `reqlock: body too large: Form("a"): over 5 bytes: see core.WithMaxBody`, 5,
		},
		"MaxBytesReader": {
			nethttplock.JSONField("a"), 7, -1, `reqlock: body too large: JSONField("a"): over 7 bytes: see http.MaxBytesReader`, 7,
		},
		"ReadBody": {core.KeyOf(read).Describe("WithMaxBody(5)", ""), 0, 9, `reqlock: body too large: WithMaxBody(5): over 5 bytes`, 5},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(`{"a":"b"}`))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.ContentLength = test.length
		if test.within > 0 {
			r.Body = http.MaxBytesReader(httptest.NewRecorder(), r.Body, test.within)
		}
		_, err := test.key.Read(r)
		if !errors.Is(err, core.ErrBodyTooLarge) || err.Error() != test.want {
			t.Errorf("%s: %v, want %s", name, err, test.want)
		}
		if refusal, _ := core.RefusalOf(err); refusal.MaxBody != test.limit {
			t.Errorf("%s: the limit is %d, want %d", name, refusal.MaxBody, test.limit)
		}
	}
}

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
