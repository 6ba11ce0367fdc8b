// Command console serves the pages of package console beside a small bank that is always busy:
//
//	go run ./examples/console
//	REDIS_URL=redis://localhost:6379/0 go run ./examples/console
//
// Locks move, requests wait, and now and then the outcome of a payment becomes unknown, which the pages
// resolve. Without REDIS_URL it starts an embedded Redis. It serves until it is interrupted. The code to
// copy is in routes.go.
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

	"github.com/reqlock/reqlock/examples/demoredis"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "where to listen; port 0 is any free one")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	if err := run(ctx, os.Stdout, *addr, os.Getenv("REDIS_URL")); err != nil {
		fmt.Fprintln(os.Stderr, "console:", err)
		os.Exit(1)
	}
}

// run serves the pages, and keeps the bank busy, until ctx ends.
func run(ctx context.Context, out io.Writer, addr, redisURL string) error {
	rdb, err := demoredis.Connect(ctx, redisURL)
	if err != nil {
		return err
	}
	defer rdb.Close()
	handler, err := routes(rdb.Client)
	if err != nil {
		return err
	}
	bank, err := newBank(rdb.Client)
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return errors.Join(err, bank.close(ctx))
	}
	fmt.Fprintf(out, "http://%s/admin/locks/ shows the locks of a busy bank. Redis: %s\n", listener.Addr(), rdb.Name)

	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	serving, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		bank.run(serving)
	}()
	select {
	case err = <-served:
	case <-ctx.Done():
	}
	cancel()
	<-ended
	closing, stop := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer stop()
	return errors.Join(err, server.Shutdown(closing), bank.close(closing))
}
