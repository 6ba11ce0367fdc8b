// Command outcome shows what became of an idempotent request, and resolves it:
//
//	outcome KEY
//	outcome KEY not_done SEEN
//	outcome KEY done SEEN
//	outcome KEY answered SEEN 201 '{"id":7}'
//
// KEY is the endpoint_key of a log line, and SEEN is what the first form prints. REDIS_URL is
// the Redis of the service. If the service has a core.WithPrefix or a core.WithRetention, set
// -prefix and -retention to their values.
//
// The answer of answered is that of the adapters for HTTP. For a service on gRPC, copy this
// program, and call grpclock.NewAnswer.
//
// The page [unknown outcomes] says when to use which form.
//
// [unknown outcomes]: https://github.com/reqlock/reqlock/blob/main/docs/unknown-outcomes.md
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/examples/demoredis"
	"github.com/reqlock/reqlock/nethttplock"
)

func main() {
	p := program{out: os.Stdout, redisURL: os.Getenv("REDIS_URL")}
	flag.StringVar(&p.prefix, "prefix", "reqlock:", "the core.WithPrefix of the service")
	flag.DurationVar(&p.retention, "retention", 24*time.Hour, "the core.WithRetention of the service")
	flag.Parse()
	if err := p.run(context.Background(), flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A program is one run.
type program struct {
	out              io.Writer
	redisURL, prefix string
	retention        time.Duration
}

// run shows or resolves the request of the arguments.
func (p program) run(ctx context.Context, args []string) (err error) {
	if p.redisURL == "" {
		return errors.New("REDIS_URL is not set: it is the Redis of the service")
	}
	rdb, err := demoredis.Connect(ctx, p.redisURL)
	if err != nil {
		return err
	}
	defer rdb.Close()
	locks, err := core.New(rdb.Client, core.WithPrefix(p.prefix), core.WithRetention(p.retention))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, locks.Close(ctx)) }()

	if len(args) == 1 {
		return p.show(ctx, locks, args[0])
	}
	resolution, err := resolutionOf(args)
	if err != nil {
		return err
	}
	var seen core.AttemptID
	if err := seen.UnmarshalText([]byte(args[2])); err != nil { //nolint:gosec // resolutionOf checks how many there are
		return err
	}
	return locks.Resolve(ctx, args[0], resolution, seen)
}

// show prints the record of a request.
func (p program) show(ctx context.Context, locks *core.Locker, key string) error {
	record, err := locks.ReadRecord(ctx, key)
	if err != nil {
		return err
	}
	fmt.Fprintln(p.out, "state:    ", record.State)
	fmt.Fprintln(p.out, "seen:     ", record.Attempt)
	if record.Number > 0 { // 0 if the outcome is known
		fmt.Fprintln(p.out, "attempts: ", record.Number)
	}
	fmt.Fprintln(p.out, "retention:", record.Retention)
	return nil
}

// resolutionOf returns the resolution that the arguments name.
func resolutionOf(args []string) (core.Resolution, error) {
	switch {
	case len(args) == 3 && args[1] == "not_done":
		return core.NotDone(), nil
	case len(args) == 3 && args[1] == "done":
		return core.Done(), nil
	case len(args) == 5 && args[1] == "answered":
		status, err := strconv.Atoi(args[3])
		if err != nil {
			return core.Resolution{}, fmt.Errorf("the status of the answer is no number: %w", err)
		}
		header := http.Header{"Content-Type": {"application/json"}}
		answer, err := nethttplock.NewAnswer(status, header, []byte(args[4]))
		return core.Answered(answer), err
	}
	return core.Resolution{}, errors.New("usage: outcome [-prefix P] [-retention D] KEY [not_done SEEN | done SEEN | answered SEEN STATUS JSON]")
}
