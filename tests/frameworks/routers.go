// Package frameworks has the code of docs/frameworks.md: reqlock with frameworks that need no
// adapter. Each file has the parts of programs that use one or two of them, and its test runs
// these parts.
package frameworks

import (
	"net/http"

	"github.com/go-chi/chi/v5"
	"github.com/gorilla/mux"

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

// gorillaRoutes returns routes on which the transfers of one account run one at a time.
func gorillaRoutes(locks *core.Locker, transfer http.HandlerFunc) http.Handler {
	account := core.Getter(func(r *http.Request) string { return mux.Vars(r)["id"] }).Named("account")
	lock := nethttplock.Middleware(locks, account)
	r := mux.NewRouter()
	r.Handle("/accounts/{id}/transfer", lock(transfer)).Methods(http.MethodPost)
	return r
}
