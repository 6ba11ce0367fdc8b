package main

import (
	"net/http"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/console"
	"github.com/reqlock/reqlock/inspect"
)

// routes returns the pages, with all actions. A service puts its own authentication in front of them, and
// its WithActor returns the user's name. Here everybody is "demo", so the program listens to this machine
// only, and only by its own names: the name of another site may lead here, too (DNS rebinding).
func routes(rdb redis.UniversalClient) (http.Handler, error) {
	i, err := inspect.New(rdb)
	if err != nil {
		return nil, err
	}
	pages, err := console.New(i,
		console.WithActions(console.Revoke, console.FreeNow, console.Resolve),
		console.WithActor(func(*http.Request) string { return "demo" }),
	)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	for _, host := range []string{"localhost", "127.0.0.1"} {
		mux.Handle(host+"/admin/locks/", pages)
		mux.Handle(host+"/{$}", http.RedirectHandler("/admin/locks/", http.StatusFound))
	}
	return mux, nil
}
