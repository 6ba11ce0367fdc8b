// Command gin runs a small bank on Gin, with locks on its routes.
//
//	go run ./examples/gin
//	REDIS_URL=redis://localhost:6379/0 go run ./examples/gin
//
// Without REDIS_URL it starts an embedded Redis. It prints commands to try, and
// serves until it is interrupted. The code to copy is in rules.go.
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

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/examples/demoredis"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:0", "where to listen; port 0 is any free one")
	flag.Parse()
	gin.SetMode(gin.ReleaseMode)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	if err := run(ctx, os.Stdout, *addr, os.Getenv("REDIS_URL")); err != nil {
		fmt.Fprintln(os.Stderr, "gin:", err)
		os.Exit(1)
	}
}

// run serves the bank until ctx ends, and then waits for the requests in flight.
func run(ctx context.Context, out io.Writer, addr, redisURL string) error {
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
	printCurls(out, "http://"+listener.Addr().String())

	b := newBank(time.Second)
	server := &http.Server{Handler: routes(locks, b, out), ReadHeaderTimeout: 5 * time.Second} //nolint:contextcheck // a request brings its own
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return errors.Join(server.Shutdown(closing), locks.Close(closing))
}

// printCurls prints commands to try.
func printCurls(out io.Writer, url string) {
	fmt.Fprintf(out, `Serving on %[1]s until interrupted. Two withdrawals at once, one of which gets 409:

  for i in 1 2; do curl -isS -u ada:secret -d amount=30 %[1]s/accounts/ada/withdrawals & done; wait

Two transfers at once, which wait for each other:

  for i in 1 2; do curl -isS -u ada:secret --json '{"from":"ada","to":"bob","amount":10}' %[1]s/transfers & done; wait

One transfer that is sent twice, and made once. The second answer has Idempotent-Replayed:

  for i in 1 2; do curl -isS -u ada:secret -H 'Idempotency-Key: "8e03978e"' --json '{"from":"ada","to":"bob","amount":10}' %[1]s/transfers & done; wait

`, url)
}
