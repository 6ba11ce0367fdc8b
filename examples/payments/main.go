package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"github.com/reqlock/reqlock/core"
)

// The exit codes.
const (
	exitRight       = 0
	exitWrong       = 1 // something was not as expected
	exitCannotBegin = 2
)

func main() {
	holdIfAsked()
	p := program{
		out:      os.Stdout,
		errs:     os.Stderr,
		redisURL: os.Getenv("REDIS_URL"),
		parts:    allParts(),
		handler: func(bank *bank, locks *core.Locker) http.Handler {
			return newService(bank, locks).handler()
		},
	}
	flag.StringVar(&p.addr, "addr", "127.0.0.1:0", "where the service listens; port 0 is any free one")
	flag.BoolVar(&p.serve, "serve", false, "leave the service up, and say what to try")
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
	parts     []part
	// handler makes the service of a bank.
	handler func(bank *bank, locks *core.Locker) http.Handler
}

// run starts the service, plays the parts, stops everything and returns the
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
	fmt.Fprintf(p.out, "Redis:   %s\nService: %s\n\n", s.redis.Name, s.server.URL)

	if right := p.play(ctx, s); !right {
		return exitWrong
	}
	if p.serve {
		printCurls(p.out, s.server.URL)
		<-ctx.Done()
		fmt.Fprintln(p.out, "Closing.")
	}
	return exitRight
}

// play plays the parts, and reports whether all went as expected.
func (p program) play(ctx context.Context, s *stack) (right bool) {
	client := newHTTPClient(s.server.URL)
	defer client.close()
	service := &running{Client: client, Scene: s.scene, Bank: s.bank, Crash: s.crash}
	table := newTable(p.out, p.parts)
	for _, part := range p.parts {
		result := part.play(ctx, service)
		if ctx.Err() != nil {
			fmt.Fprintln(p.errs, "payments: interrupted")
			return false
		}
		table.add(result)
	}
	return table.end()
}
