package oteltest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/reqlock/reqlock/nethttplock"
)

// Clients of a service choose keys: in the path, in a header, valid and invalid ones. No key makes
// a series of metrics, whether its request runs, is refused or is answered again.
func TestKeysOfClientsAddNoSeries(t *testing.T) {
	t.Parallel()
	const clients, keys = 8, 2000
	o := newObserved(t)
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	send := func(path, idempotencyKey string, want int) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+path, http.NoBody)
		if err != nil {
			t.Error(err)
			return
		}
		r.Header.Set("Idempotency-Key", idempotencyKey)
		answer, err := server.Client().Do(r)
		if err != nil {
			t.Error(err)
			return
		}
		if _ = answer.Body.Close(); answer.StatusCode != want {
			t.Errorf("%.40s %.40s: %d", path, idempotencyKey, answer.StatusCode)
		}
	}
	account := nethttplock.Middleware(o.locks, nethttplock.PathValue("id").Named("account"))
	mux.Handle("POST /accounts/{id}", account(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		send(r.URL.Path, "", http.StatusConflict) // a second request for the key, while the first one has it
	})))
	payment := nethttplock.Idempotent(o.locks, nethttplock.IdempotencyKey().Named("payment"))
	mux.Handle("POST /payments", payment(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	visit := func(i int) {
		secret := "secret" + strconv.Itoa(i)
		send("/accounts/"+secret, "", http.StatusOK)
		send("/accounts/"+secret+strings.Repeat("x", 2000), "", http.StatusBadRequest)
		send("/payments", secret, http.StatusOK)
		send("/payments", secret, http.StatusOK) // a copy
	}

	visit(0)
	before := o.series(t)
	var group sync.WaitGroup
	for client := range clients {
		group.Go(func() {
			for i := client + 1; i <= keys; i += clients {
				visit(i)
			}
		})
	}
	group.Wait()
	server.Close()
	_ = o.locks.Close(context.Background()) // the last events have come
	after := o.series(t)
	for series, value := range after {
		if _, ok := before[series]; !ok || strings.Contains(series, "secret") {
			t.Errorf("a new series: %s", series)
		}
		if strings.HasPrefix(series, "reqlock.acquire.duration{") && value != keys+1 {
			t.Errorf("%d times %s", value, series)
		}
	}
	if len(after) != len(before) || len(before) < 10 {
		t.Errorf("%d series became %d", len(before), len(after))
	}
}
