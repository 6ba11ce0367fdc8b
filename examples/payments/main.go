// Command payments runs a small payment service on net/http, Gin, Echo, Fiber, gRPC and Connect under
// locks, and clients that test the service.
//
//	go run ./examples/payments
//	REDIS_URL=redis://localhost:6379/0 go run ./examples/payments
//
// Without REDIS_URL it starts an embedded Redis. Your own Redis keeps the records of payments for ten
// minutes. A table shows for each scenario the requests, the expected result and the result. The
// exit code is 1 if a result was not as expected.
//
// The code to copy is in service_nethttp.go, service_gin.go, service_echo.go, service_echov5.go, service_fiber.go,
// service_grpc.go and service_connect.go, and bank.go has the bank behind them. The rest tests the services:
// scenarios.go has the scenarios.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/examples/demoredis"
)

func main() {
	holdIfAsked()
	gin.SetMode(gin.ReleaseMode)
	if err := run(context.Background(), os.Stdout, os.Getenv("REDIS_URL"), frameworks(), scenarios()); err != nil {
		fmt.Fprintln(os.Stderr, "payments:", err)
		os.Exit(1)
	}
}

// run runs the scenarios on all frameworks at once, and prints the results of one framework after
// the other. It returns an error if a result is not as expected.
func run(ctx context.Context, out io.Writer, redisURL string, on []framework, what []scenario) (err error) {
	redis, err := demoredis.Connect(ctx, redisURL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, redis.Close()) }()
	fmt.Fprintf(out, "Redis: %s\n\n", redis.Name)

	begun := time.Now()
	results, errs := make([]chan result, len(on)), make([]error, len(on))
	var sites sync.WaitGroup
	for i, framework := range on {
		// Sites that share a Redis have no key in common, not even those of two runs.
		site := newSite(framework, redis.URL, fmt.Sprintf("payments:%s:%s:", rand.Text()[:8], framework.name))
		results[i] = make(chan result, len(what))
		sites.Go(func() { errs[i] = site.playAll(ctx, what, results[i]) })
	}
	rows, wrong := printTable(out, on, results)
	sites.Wait()
	if wrong > 0 {
		errs = append(errs, fmt.Errorf("%d of %d went wrong: see the rows with ✗", wrong, rows))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	fmt.Fprintf(out, "All %d went as expected, in %.1f s.\n", rows, time.Since(begun).Seconds())
	return nil
}

// playAll starts a service, runs the scenarios one after the other, and stops the service.
func (s *site) playAll(ctx context.Context, what []scenario, results chan<- result) error {
	defer close(results)
	service, err := s.start(ctx)
	if err != nil {
		return err
	}
	for _, scenario := range what {
		if s.rpc && scenario.onlyHTTP {
			continue
		}
		results <- s.play(ctx, service, scenario)
	}
	return service.stop(ctx)
}

// printTable prints the results of one framework after the other, each as soon as it is known. It
// returns the number of rows, and how many of them are not as expected.
func printTable(out io.Writer, on []framework, results []chan result) (rows, wrong int) {
	const columns, total = "%s  %-35s  %-38s  %-38s  %7s\n", 127
	fmt.Fprintf(out, columns, " ", "sent", "expected", "happened", "time")
	for i, framework := range on {
		fmt.Fprintf(out, "── %s %s\n", framework.name, strings.Repeat("─", total-len(framework.name)-4))
		for r := range results[i] {
			mark := "✓"
			if r.happened != r.expected {
				mark = "✗"
				wrong++
			}
			rows++
			fmt.Fprintf(out, columns, mark, r.sent, r.expected, r.happened, fmt.Sprintf("%d ms", r.took.Milliseconds()))
		}
	}
	fmt.Fprintln(out, strings.Repeat("─", total))
	return rows, wrong
}
