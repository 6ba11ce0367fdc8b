package console_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/console"
	"github.com/reqlock/reqlock/inspect"
)

// The service's own authentication stands in front of the pages, and says who acts.
func Example() {
	server := miniredis.NewMiniRedis()
	if err := server.Start(); err != nil {
		panic(err)
	}
	defer server.Close()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer rdb.Close()

	i, err := inspect.New(rdb)
	if err != nil {
		panic(err)
	}
	pages, err := console.New(i,
		console.WithActions(console.Revoke, console.Resolve),
		console.WithActor(func(r *http.Request) string {
			user, _, _ := r.BasicAuth()
			return user
		}))
	if err != nil {
		panic(err)
	}
	auth := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, password, _ := r.BasicAuth(); password != "secret" {
				w.Header().Set("WWW-Authenticate", "Basic")
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
	mux := http.NewServeMux()
	mux.Handle("/admin/locks/", auth(pages))

	r := httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/admin/locks/", http.NoBody)
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	fmt.Println(w.Code)
	r.SetBasicAuth("ada", "secret")
	w = httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	fmt.Println(w.Code, strings.Contains(w.Body.String(), "No lock is held."))
	// Output:
	// 401
	// 200 true
}
