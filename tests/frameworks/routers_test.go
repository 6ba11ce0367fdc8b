package frameworks

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/gorilla/mux"

	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/nethttplock"
)

func TestChi(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	accountRoute.checkExclusion(t, http.StatusConflict, func(transfer func(string)) http.Handler {
		return chiRoutes(locks.Locker, transferAt(transfer, func(r *http.Request) string { return chi.URLParam(r, "id") }))
	})
}

// Use at the top runs before chi has found the route.
func TestChiUseAtTheTopSeesNoPathValue(t *testing.T) {
	t.Parallel()
	r := chi.NewRouter()
	r.Use(nethttplock.Middleware(locktest.New(t).Locker, nethttplock.PathValue("id")))
	r.Post("/accounts/{id}/transfer", func(http.ResponseWriter, *http.Request) { t.Error("the handler has run") })
	server := httptest.NewServer(r)
	defer server.Close()
	if got := accountRoute.post(t, server, "42", ""); got.status != 400 || !strings.Contains(got.body, `"code":"no_key"`) {
		t.Errorf("%v", got)
	}
}

func TestGorilla(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	accountRoute.checkExclusion(t, http.StatusConflict, func(transfer func(string)) http.Handler {
		return gorillaRoutes(locks.Locker, transferAt(transfer, func(r *http.Request) string { return mux.Vars(r)["id"] }))
	})
}
