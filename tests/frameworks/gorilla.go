package frameworks

import (
	"net/http"

	"github.com/gorilla/mux"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/nethttplock"
)

// gorillaRoutes returns routes on which the transfers of one account run one at a time.
func gorillaRoutes(locks *core.Locker, transfer http.HandlerFunc) http.Handler {
	account := core.Getter(func(r *http.Request) string { return mux.Vars(r)["id"] }).Named("account")
	lock := nethttplock.Middleware(locks, account)
	r := mux.NewRouter()
	r.Handle("/accounts/{id}/transfer", lock(transfer)).Methods(http.MethodPost)
	return r
}
