// Command echo runs a small bank on Echo, with locks on its routes.
//
//	go run ./examples/echo
//	REDIS_URL=redis://localhost:6379/0 go run ./examples/echo
//
// Without REDIS_URL it starts an embedded Redis. It prints commands to try, and
// serves until it is interrupted. The code to copy is in routes.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
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
		fmt.Fprintln(os.Stderr, "echo:", err)
		os.Exit(1)
	}
}

// run serves a bank until ctx ends, and then waits for the requests in flight.
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
	e := routes(locks, b)
	e.HideBanner, e.HidePort = true, true
	e.Listener, err = new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	printCurls(out, "http://"+e.Listener.Addr().String())

	served := make(chan error, 1)
	go func() { served <- e.Start("") }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	err = errors.Join(e.Shutdown(closing), locks.Close(closing))
	if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}

// printCurls prints commands to try.
func printCurls(out io.Writer, url string) {
	fmt.Fprintf(out, `Serving on %[1]s until interrupted. Two withdrawals at once, one of which gets 409:

  for i in 1 2; do curl -isS -u ada:secret -d amount=30 %[1]s/accounts/ada/withdrawals & done; wait

Two transfers at once, which wait for each other:

  for i in 1 2; do curl -isS -u ada:secret -d to=bob -d amount=10 %[1]s/transfers & done; wait

One transfer that is sent twice, and made once. The second answer has Idempotent-Replayed:

  for i in 1 2; do curl -isS -u ada:secret -H 'Idempotency-Key: "8e03978e"' -d to=bob -d amount=10 %[1]s/transfers & done; wait

`, url)
}
