// Command worker answers a request with 202, and lets a worker of asynq do the work under the same lock:
//
//	cd examples/worker && go run .
//	curl -i -X POST -H 'Idempotency-Key: "1"' localhost:8080/accounts/7/orders
//
// With REDIS_URL, -only service and -only worker are two processes. Without it, both run here, on an
// embedded Redis. The code to copy is in service.go and worker.go.
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

	"github.com/hibiken/asynq"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/examples/demoredis"
)

// options are the flags of the program.
type options struct {
	addr, only string
	ttl, grace time.Duration
}

// onStep is called at each step of an order. The test kills the process there.
var onStep = func(string) {}

func main() {
	var o options
	flag.StringVar(&o.addr, "addr", "127.0.0.1:8080", "where to listen; port 0 is any free one")
	flag.StringVar(&o.only, "only", "", "service or worker; both if it is empty")
	flag.DurationVar(&o.ttl, "ttl", 10*time.Second, "how long a lease lives without a renewal")
	flag.DurationVar(&o.grace, "grace", time.Minute, "how long a job may wait for its worker")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	if err := run(ctx, os.Stdout, o, os.Getenv("REDIS_URL")); err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1)
	}
}

// run serves and works until ctx ends.
func run(ctx context.Context, out io.Writer, o options, redisURL string) error {
	rdb, err := demoredis.Connect(ctx, redisURL)
	if err != nil {
		return err
	}
	defer rdb.Close()
	locks, err := core.New(rdb.Client, core.WithFencing(true), core.WithTTL(o.ttl), core.WithMaxHold(time.Minute))
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		_ = locks.Close(closing)
	}()
	orders := orders{rdb.Client}
	if o.only != "service" {
		server := asynq.NewServerFromRedisClient(rdb.Client, asynq.Config{LogLevel: asynq.FatalLevel})
		if err := server.Start(&worker{locks, orders}); err != nil {
			return err
		}
		defer server.Shutdown()
	}
	if o.only == "worker" {
		fmt.Fprintln(out, "working")
		<-ctx.Done()
		return nil
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", o.addr)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "http://%s\n", listener.Addr())
	s := &service{locks, orders, asynq.NewClientFromRedisClient(rdb.Client), o.grace}
	server := &http.Server{Handler: s.routes(), ReadHeaderTimeout: 5 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = server.Shutdown(context.WithoutCancel(ctx)) })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
