// Command grpc runs a small bank on gRPC, with locks on its methods.
//
//	cd examples/grpc && go run .
//	cd examples/grpc && REDIS_URL=redis://localhost:6379/0 go run .
//
// Without REDIS_URL it starts an embedded Redis. It prints the locks of all methods,
// makes a few calls, prints commands to try, and serves until it is interrupted. The
// locks are declared in bank/v1/bank.proto, and the code to copy is in server.go.
//
// The example is a module of its own, because the generated code of an annotated service
// requires the module annotations.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/examples/demoredis"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:0", "where to listen; port 0 is any free one")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	if err := run(ctx, os.Stdout, *addr, os.Getenv("REDIS_URL"), newBank(time.Second)); err != nil {
		fmt.Fprintln(os.Stderr, "grpc:", err)
		os.Exit(1)
	}
}

// run serves a bank until ctx ends, and then waits for the calls in flight.
func run(ctx context.Context, out io.Writer, addr, redisURL string, b *bank) error {
	rdb, err := demoredis.Connect(ctx, redisURL)
	if err != nil {
		return err
	}
	defer rdb.Close()
	locks, err := core.New(rdb.Client)
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	addr = listener.Addr().String()
	fmt.Fprintf(out, "Serving on %s until interrupted, by these rules:\n\n", addr)

	rules := rulesOfBank()
	for rule := range rules.All() {
		fmt.Fprintln(out, rule)
	}
	fmt.Fprintln(out)
	server := newServer(locks, rules, b)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	if err := tryOut(ctx, out, addr); err != nil && ctx.Err() == nil {
		server.Stop()
		return errors.Join(err, <-served)
	}
	printCalls(out, addr)
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	defer context.AfterFunc(closing, server.Stop)() // cuts off those that take too long
	server.GracefulStop()
	return errors.Join(<-served, locks.Close(closing))
}

// printCalls prints commands to try.
func printCalls(out io.Writer, addr string) {
	fmt.Fprintf(out, `Two settlements at once, which wait for each other:

  for i in 1 2; do grpcurl -plaintext -H 'authorization: Bearer ada-token' \
    -d '{"account":{"id":"ada"},"payee":{"id":"bob"},"cents":10}' %[1]s bank.v1.Bank/Settle & done; wait

One transfer that is sent twice, and made once. The second answer has idempotent-replayed:

  for i in 1 2; do grpcurl -v -plaintext -H 'authorization: Bearer ada-token' \
    -d '{"account":{"id":"ada"},"payee":{"id":"bob"},"cents":10,"request_id":"8e03978e"}' %[1]s bank.v1.Bank/Transfer & done; wait

A stream of coins into one account:

  grpcurl -plaintext -H 'authorization: Bearer bob-token' \
    -d '{"account":{"id":"ada"},"cents":5} {"cents":5}' %[1]s bank.v1.Bank/Deposit

`, addr)
}
