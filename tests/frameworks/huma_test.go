package frameworks

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/reqlock/reqlock/core/locktest"
)

var humaRoute = route{path: "/transfers", body: `{"account":"ACCOUNT"}`}

func TestHuma(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	humaRoute.checkExclusion(t, http.StatusConflict, func(transfer func(string)) http.Handler {
		return humaRoutes(locks.Locker, func(_ context.Context, account string) error {
			transfer(account)
			return nil
		})
	})
}

// The body is compared, and Huma's answer is stored.
func TestHumaIdempotent(t *testing.T) {
	t.Parallel()
	runs := 0
	server := httptest.NewServer(humaRoutes(locktest.New(t).Locker, func(context.Context, string) error {
		runs++
		return nil
	}))
	defer server.Close()
	const key = "8e03978e"
	first, copied, other := humaRoute.post(t, server, "42", key), humaRoute.post(t, server, "42", key), humaRoute.post(t, server, "7", key)
	if first.status != 201 || copied.status != 201 || copied.header.Get("Idempotent-Replayed") != "true" || other.status != 422 || runs != 1 {
		t.Errorf("%v, then %v, and with another body %v; %d runs", first, copied, other, runs)
	}
}
