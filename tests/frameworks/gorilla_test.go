package frameworks

import (
	"net/http"
	"testing"

	"github.com/gorilla/mux"

	"github.com/reqlock/reqlock/core/locktest"
)

func TestGorilla(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	accountRoute.checkExclusion(t, http.StatusConflict, func(transfer func(string)) http.Handler {
		return gorillaRoutes(locks.Locker, transferAt(transfer, func(r *http.Request) string { return mux.Vars(r)["id"] }))
	})
}
