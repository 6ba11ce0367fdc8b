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
	exitRight       = 0
	exitWrong       = 1 // something was not as expected
	exitCannotBegin = 2
)

func main() {
	holdIfAsked()
	gin.SetMode(gin.ReleaseMode)
	p := program{
		out:      os.Stdout,
		errs:     os.Stderr,
		redisURL: os.Getenv("REDIS_URL"),

		frameworks: allFrameworks(),
		parts:      allParts,
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
	redisURL  string // empty: an embedded Redis
	addr      string
	serve     bool

	frameworks []framework
	parts      func(words) []part
}

// run starts the services, plays the parts, stops everything and returns the
// exit code. When ctx ends it stops early.
func (p program) run(ctx context.Context) (code int) {
	s, err := p.start(ctx)
	if err != nil {
		fmt.Fprintln(p.errs, "payments:", err)
		return exitCannotBegin
	}
	defer func() {
		if err := s.stop(ctx); err != nil {
			fmt.Fprintln(p.errs, "payments:", err)
			code = exitWrong
		}
	}()
	fmt.Fprintf(p.out, "Redis: %s\n\n", s.redis.Name)

	if right := p.play(ctx, s); !right {
		return exitWrong
	}
	if p.serve {
		printLines(p.out, s.sites)
		<-ctx.Done()
		fmt.Fprintln(p.out, "Closing.")
	}
	return exitRight
}

// play plays the parts on all sites at once, shows one site after the other,
// and reports whether all went as expected.
func (p program) play(ctx context.Context, s *stack) (right bool) {
	ctx, cancel := context.WithCancel(ctx)
	var players sync.WaitGroup
	defer players.Wait()
	defer cancel()

	parts := make([][]part, len(s.sites))
	results := make([]chan result, len(s.sites))
	errs := make([]error, len(s.sites))
	for i, site := range s.sites {
		parts[i] = p.parts(site.Words)
		results[i] = make(chan result, len(parts[i]))
		players.Go(func() {
			defer close(results[i])
			errs[i] = site.play(ctx, parts[i], results[i])
		})
	}
	table := newTable(p.out, slices.Concat(parts...))
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
