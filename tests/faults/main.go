// Command faults is the fault campaign of reqlock: it breaks servers, networks and
// clients, and judges what the clients have called and heard meanwhile.
//
//	go run . -short                         for each change: some minutes
//	go run . -long -for 8h                  for a night
//	go run . -run 'name' -on server -seed 1  one run, again; -count 20 for 20 times
//	go run . -validate out/.../history.json    judge a kept history again
//	go run . -mutants                       would it find mistakes?
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/redis/go-redis/v9/logging"

	"github.com/reqlock/reqlock/tests/faults/internal/campaign"
	"github.com/reqlock/reqlock/tests/faults/internal/traffic"
)

func main() {
	if code, client := traffic.Main(); client {
		os.Exit(code)
	}
	logging.Disable() // go-redis tells of each failover that the campaign has caused
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends it at once, and its servers with it
	os.Exit(campaign.Main(ctx, os.Stdout, os.Args[1:]))
}
