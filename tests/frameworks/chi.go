package frameworks

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/nethttplock"
)

// chiRoutes returns routes on which the transfers of one account run one at a time.
func chiRoutes(locks *core.Locker, transfer http.HandlerFunc) http.Handler {
	lock := nethttplock.Middleware(locks, nethttplock.PathValue("id").Named("account"))
	r := chi.NewRouter()
	r.With(lock).Post("/accounts/{id}/transfer", transfer)
	return r
}
