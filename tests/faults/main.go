// Command faults is the fault campaign of reqlock. It injects faults into servers, networks
// and clients, and validates the history of what the clients called and what was returned
// to them.
//
//	go run . -short                           for each change: a few minutes
//	go run . -long -for 8h                    for a night
//	go run . -run 'name' -on server -seed 1   one run again; -count 20 for 20 times
//	go run . -validate out/.../history.json   validate a kept history again
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
	logging.Disable() // go-redis logs each failover, which the campaign has caused
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once, and its servers with it
	os.Exit(campaign.Main(ctx, os.Stdout, os.Args[1:]))
}
