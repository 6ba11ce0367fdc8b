package frameworks

import (
	"net/http"

	"github.com/zeromicro/go-zero/rest"
	"github.com/zeromicro/go-zero/rest/pathvar"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/nethttplock"
)

// addZeroRoutes adds routes on which the transfers of one account run one at a time.
func addZeroRoutes(server *rest.Server, locks *core.Locker, transfer http.HandlerFunc) {
	account := core.Getter(func(r *http.Request) string { return pathvar.Vars(r)["id"] }).Named("account")
	lock := rest.ToMiddleware(nethttplock.Middleware(locks, account))
	server.AddRoutes(rest.WithMiddleware(lock,
		rest.Route{Method: http.MethodPost, Path: "/accounts/:id/transfer", Handler: transfer}))
}
