// Command observed runs a small bank on Gin with metrics and traces of its locks, and
// clients that want the same locks at the same time.
//
//	cd examples/observed && go run .
//	cd examples/observed && go run . -serve
//	cd examples/observed && REDIS_URL=redis://localhost:6379/0 go run .
//
// It prints each trace with the time of each span, so a request that waits for a lock is
// one trace: the client, the service, the wait and the work. At its end it prints the
// metrics as Prometheus reads them. With -serve it goes on until it is interrupted.
//
// Without REDIS_URL it starts an embedded Redis. It is a module of its own, so that
// reqlock needs no exporter. The code to copy is in telemetry.go and service.go.
package main

import (
	"context"
	"crypto/rand"
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
	p := program{out: os.Stdout, redisURL: os.Getenv("REDIS_URL"), work: 200 * time.Millisecond}
	flag.StringVar(&p.addr, "addr", "127.0.0.1:0", "where to listen; port 0 is any free one")
	flag.BoolVar(&p.serve, "serve", false, "serve until interrupted")
	flag.Parse()
	gin.SetMode(gin.ReleaseMode)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	if err := p.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "observed:", err)
		os.Exit(1)
	}
}

// A program is one run.
type program struct {
	out      io.Writer
	addr     string
	redisURL string        // "" means an embedded Redis
	work     time.Duration // how long another bank takes to answer
	serve    bool
}

// run starts the service, sends the requests of the clients, and prints the metrics. With
// serve it goes on until ctx ends.
func (p program) run(ctx context.Context) error {
	rdb, err := demoredis.Connect(ctx, p.redisURL)
	if err != nil {
		return err
	}
	defer rdb.Close()
	t, err := newTelemetry(p.out)
	if err != nil {
		return err
	}
	locks, err := core.New(rdb.Client, core.WithObserver(t.locks.Observe), core.WithUnknownSearch(time.Minute),
		core.WithInstance(core.Instance{Service: "bank"}))
	if err != nil {
		return err
	}
	if err := t.locks.Watch(locks); err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", p.addr)
	if err != nil {
		return err
	}
	b := newBank(p.work, t)
	server := &http.Server{Handler: routes(locks, b, t), ReadHeaderTimeout: 5 * time.Second} //nolint:contextcheck // a request brings its own
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()

	err = p.print(ctx, clients{url: "http://" + listener.Addr().String(), payment: rand.Text(), telemetry: t, bank: b})
	if p.serve && err == nil {
		select {
		case err = <-served:
		case <-ctx.Done():
		}
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return errors.Join(err, server.Shutdown(closing), locks.Close(closing), t.close(closing))
}

// print sends the requests of the clients, and prints their spans and metrics.
func (p program) print(ctx context.Context, c clients) error {
	for _, s := range scenarios() {
		fmt.Fprintf(p.out, "── %s\n\n", s.heading)
		if err := c.run(ctx, s); err != nil {
			return err
		}
	}
	fmt.Fprintf(p.out, "── GET %s/metrics, without the buckets of histograms and the metrics of Gin\n\n", c.url)
	if err := printMetrics(ctx, p.out, c.url+"/metrics"); err != nil || !p.serve {
		return err
	}
	_, err := fmt.Fprintf(p.out, `
── Serving until interrupted. Three transfers at the same time:

  for i in 1 2 3; do curl -sX POST %[1]s/accounts/ada/transfers & done; wait

`, c.url)
	return err
}
