package frameworks

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/reqlock/reqlock/core/locktest"
)

// A payment that did not reach the service runs when it is sent again. Then a copy gets the answer.
func TestReverseProxy(t *testing.T) {
	t.Parallel()
	locks, payments := locktest.New(t), route{path: "/payments"}
	paid := 0
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		paid++
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, "paid")
	}))
	defer service.Close()
	var got []answer
	for _, to := range []string{"http://127.0.0.1:1", service.URL, service.URL} {
		target, err := url.Parse(to)
		if err != nil {
			t.Fatal(err)
		}
		edge := httptest.NewServer(proxyRoutes(locks.Locker, target))
		got = append(got, payments.post(t, edge, "", "8e03978e"))
		edge.Close()
	}
	if got[0].status != 502 || got[1].status != 201 || got[2].status != 201 || got[2].body != "paid" || paid != 1 {
		t.Errorf("%v; paid %d times", got, paid)
	}
}
