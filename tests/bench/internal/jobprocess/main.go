package jobprocess

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/pprof"
	"time"
)

// environment marks a process as a child.
const environment = "REQLOCK_BENCH_CHILD"

// Is reports whether this process is a child. Then it must only call Main.
func Is() bool { return os.Getenv(environment) != "" }

// Main does the job that the parent sends, and returns the exit code. newJob returns an
// empty job of a kind, or nil if the kind is unknown.
func Main(newJob func(kind string) Job) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if err := serve(ctx, cancel, os.Stdin, json.NewEncoder(os.Stdout), newJob); err != nil {
		fmt.Fprintln(os.Stderr, "bench: child:", err)
		return 1
	}
	return 0
}

// serve does one job. It calls cancel when the input ends. Errors of the job go to the
// parent. serve returns the errors that cannot be sent.
func serve(ctx context.Context, cancel func(), in io.Reader, out *json.Encoder, newJob func(string) Job) (err error) {
	orders := json.NewDecoder(in)
	var o jobMessage
	if err := orders.Decode(&o); err != nil {
		return fmt.Errorf("read the job: %w", err)
	}
	job := newJob(o.Kind)
	if job == nil {
		return fmt.Errorf("no job is named %q", o.Kind)
	}
	if err := json.Unmarshal(o.Job, job); err != nil {
		return fmt.Errorf("read the job: %w", err)
	}

	defer func() { err = errors.Join(err, job.Close()) }()
	if err := job.Prepare(ctx); err != nil {
		return out.Encode(reply{Error: err.Error()})
	}
	if err := out.Encode(reply{}); err != nil {
		return err
	}
	var s startMessage
	if err := orders.Decode(&s); errors.Is(err, io.EOF) {
		return nil // another child has failed
	} else if err != nil {
		return fmt.Errorf("read when to begin: %w", err)
	}
	go func() { // ends with the input, so with the process
		var nothing startMessage
		for orders.Decode(&nothing) == nil {
		}
		cancel()
	}()

	result, err := run(ctx, job, s.Start, o.Profile)
	if err != nil {
		return out.Encode(reply{Error: err.Error()})
	}
	return out.Encode(reply{Result: result})
}

// run runs a job, with a profile if there is a path for it, and returns the result as JSON.
func run(ctx context.Context, job Job, start time.Time, profilePath string) (_ json.RawMessage, err error) {
	stop, err := profile(profilePath)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	result, err := job.Run(ctx, start)
	if err != nil {
		return nil, err
	}
	return json.Marshal(result)
}

// profile starts a CPU profile, if there is a path for it, and returns the function that
// stops it.
func profile(path string) (stop func() error, err error) {
	if path == "" {
		return func() error { return nil }, nil
	}
	file, err := os.Create(path) //nolint:gosec // the path is the parent's
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return file.Close()
	}, nil
}
