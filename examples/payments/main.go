package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"

	"github.com/gin-gonic/gin"
)

// The exit codes.
const (
	exitExpected    = 0
	exitUnexpected  = 1 // a result was not as expected
	exitCannotStart = 2
)

func main() {
	runHolder()
	gin.SetMode(gin.ReleaseMode)
	p := program{
		out:      os.Stdout,
		errs:     os.Stderr,
		redisURL: os.Getenv("REDIS_URL"),

		frameworks: allFrameworks(),
		scenarios:  allScenarios,
	}
	flag.StringVar(&p.addr, "addr", "127.0.0.1:0",
		"where the first service listens; the others take the next ports; port 0 is any free one")
	flag.BoolVar(&p.serve, "serve", false, "leave the services up, and say what to try")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	os.Exit(p.run(ctx))
}

// A program is one run.
type program struct {
	out, errs io.Writer
	redisURL  string // empty means an embedded Redis
	addr      string
	serve     bool

	frameworks []framework
	scenarios  func(protocol) []scenario
}

// run starts the services, runs the scenarios, stops everything and returns the exit
// code. It stops early if ctx ends.
func (p program) run(ctx context.Context) (code int) {
	s, err := p.start(ctx)
	if err != nil {
		fmt.Fprintln(p.errs, "payments:", err)
		return exitCannotStart
	}
	defer func() {
		if err := s.stop(ctx); err != nil {
			fmt.Fprintln(p.errs, "payments:", err)
			code = exitUnexpected
		}
	}()
	fmt.Fprintf(p.out, "Redis: %s\n\n", s.redis.Name)

	if right := p.runScenarios(ctx, s); !right {
		return exitUnexpected
	}
	if p.serve {
		printCommands(p.out, s.sites)
		<-ctx.Done()
		fmt.Fprintln(p.out, "Closing.")
	}
	return exitExpected
}

// runScenarios runs the scenarios on all sites at once, prints the results one site
// after the other, and reports whether all results were as expected.
func (p program) runScenarios(ctx context.Context, s *stack) (right bool) {
	ctx, cancel := context.WithCancel(ctx)
	var runs sync.WaitGroup
	defer runs.Wait()
	defer cancel()

	scenarios := make([][]scenario, len(s.sites))
	results := make([]chan result, len(s.sites))
	errs := make([]error, len(s.sites))
	for i, site := range s.sites {
		scenarios[i] = p.scenarios(site.Protocol)
		results[i] = make(chan result, len(scenarios[i]))
		runs.Go(func() {
			defer close(results[i])
			errs[i] = site.run(ctx, scenarios[i], results[i])
		})
	}
	table := newTable(p.out, slices.Concat(scenarios...))
	for i, site := range s.sites {
		table.block(site.Name + " on " + site.server.Addr)
		for result := range results[i] {
			table.add(result)
		}
		switch {
		case ctx.Err() != nil:
			fmt.Fprintln(p.errs, "payments: interrupted")
			return false
		case errs[i] != nil:
			fmt.Fprintf(p.errs, "payments: %s: %v\n", site.Name, errs[i])
			return false
		}
	}
	return table.end()
}
