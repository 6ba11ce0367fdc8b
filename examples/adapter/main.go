// Command adapter serves a locked and an idempotent route, by an adapter for a router of its own:
//
//	go run ./examples/adapter
//	curl -X POST localhost:8080/accounts/42/transfer & curl -iX POST localhost:8080/accounts/42/transfer
//	curl -iX POST -u ada:pw -H 'Idempotency-Key: "8e03978e"' localhost:8080/payments
//
// Without REDIS_URL it starts an embedded Redis.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/examples/adapter/errlock"
	"github.com/reqlock/reqlock/examples/adapter/errmux"
	"github.com/reqlock/reqlock/examples/demoredis"
)

func main() {
	rdb, err := demoredis.Connect(context.Background(), os.Getenv("REDIS_URL"))
	if err != nil {
		log.Fatal(err)
	}
	locks := core.Must(core.New(rdb.Client))
	mux := &errmux.Mux{}
	mux.Handle("POST /accounts/{id}/transfer", func(w http.ResponseWriter, _ *http.Request) error {
		time.Sleep(2 * time.Second)
		_, err := fmt.Fprintln(w, "transferred")
		return err
	}, errlock.Middleware(locks, errlock.PathValue("id").Named("account")))
	mux.Handle("POST /payments", func(http.ResponseWriter, *http.Request) error {
		return &errmux.Error{Status: http.StatusUnprocessableEntity, Text: "no funds at " + time.Now().String()}
	}, errlock.Idempotent(locks, core.Join(errlock.BasicUser(), errlock.IdempotencyKey())))
	server := &http.Server{Addr: "localhost:8080", Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(server.ListenAndServe())
}
