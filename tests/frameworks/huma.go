package frameworks

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"
	"github.com/go-chi/chi/v5"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/nethttplock"
)

// humaMiddleware makes a middleware of an operation out of one of net/http.
func humaMiddleware(of func(http.Handler) http.Handler) func(huma.Context, func(huma.Context)) {
	return func(c huma.Context, next func(huma.Context)) {
		r, w := humachi.Unwrap(c)
		of(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next(humachi.NewContext(c.Operation(), r, w))
		})).ServeHTTP(w, r.WithContext(c.Context()))
	}
}

// A transferInput is the input of a transfer.
type transferInput struct {
	Body struct {
		Account string `json:"account"`
	}
}

// humaRoutes returns an operation of which the transfers of one account run one at a time, and a transfer with
// one Idempotency-Key runs once.
func humaRoutes(locks *core.Locker, transfer func(context.Context, string) error) http.Handler {
	once := nethttplock.Idempotent(locks, core.Join(nethttplock.BasicUser(), nethttplock.IdempotencyKey()))
	lock := nethttplock.Middleware(locks, nethttplock.JSONField("account").Named("account"))
	r := chi.NewRouter()
	api := humachi.New(r, huma.DefaultConfig("bank", "1.0.0"))
	huma.Register(api, huma.Operation{
		Method: http.MethodPost, Path: "/transfers", DefaultStatus: http.StatusCreated,
		Middlewares: huma.Middlewares{humaMiddleware(once), humaMiddleware(lock)},
	}, func(ctx context.Context, in *transferInput) (*struct{}, error) {
		return nil, transfer(ctx, in.Body.Account)
	})
	return r
}
