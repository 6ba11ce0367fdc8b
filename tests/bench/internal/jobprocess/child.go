// Package jobprocess runs jobs in processes of their own, by starting this program again. Each
// run begins with an empty heap and new connections, and its CPU time is its own. Several
// processes compete like the instances of a service.
//
// Parent and child exchange JSON over the standard input and output of the child:
//
//	parent  the job
//	child   ready: connected and warmed up
//	parent  the start time, the same for all children
//	child   the result
//
// A child stops when its input ends, so none outlives its parent.
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

// A Job is work for one process. Its exported fields go to the child as JSON.
type Job interface {
	// Prepare connects and warms up.
	Prepare(ctx context.Context) error
	// Run does the work from the time start on. The result goes to the parent as JSON.
	Run(ctx context.Context, start time.Time) (any, error)
	// Close ends what Prepare has started, even if Prepare has failed.
	Close() error
}

// An order is the first message to a child. The second is the start time.
type order struct {
	Type string // of the job
	Job  json.RawMessage
}

// A reply is a message of a child: ready, or the result.
type reply struct {
	Error  string
	Result json.RawMessage
}

// environment marks a process as a child.
const environment = "REQLOCK_BENCH_CHILD"

// IsChild reports whether this process is a child. Then it must only call Main.
func IsChild() bool { return os.Getenv(environment) != "" }

// Main does the job that the parent sends, and returns the exit code. The job has the type of one
// of jobs, which are empty.
func Main(jobs ...Job) int {
	if err := serve(os.Stdin, json.NewEncoder(os.Stdout), jobs); err != nil {
		fmt.Fprintln(os.Stderr, "bench: child:", err)
		return 1
	}
	return 0
}

// serve does one job. Errors of the job go to the parent. serve returns the errors that cannot be
// sent.
func serve(in io.Reader, out *json.Encoder, jobs []Job) (err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	orders := json.NewDecoder(in)
	job, err := readJob(orders, jobs)
	if err != nil {
		return fmt.Errorf("read the job: %w", err)
	}

	defer func() { err = errors.Join(err, job.Close()) }()
	if err := job.Prepare(ctx); err != nil {
		return out.Encode(reply{Error: err.Error()})
	}
	if err := out.Encode(reply{}); err != nil {
		return err
	}
	var start time.Time
	if err := orders.Decode(&start); errors.Is(err, io.EOF) {
		return nil // another child has failed
	} else if err != nil {
		return fmt.Errorf("read when to begin: %w", err)
	}
	go func() { // ends with the input, so with the process
		_ = orders.Decode(new(time.Time))
		cancel()
	}()

	result, failed := runProfiled(ctx, job, start, os.Getenv(profileEnvironment))
	text, err := json.Marshal(result)
	if failed = errors.Join(failed, err); failed != nil {
		return out.Encode(reply{Error: failed.Error()})
	}
	return out.Encode(reply{Result: text})
}

// profileEnvironment names the file for the CPU profile of a child. "" is none.
const profileEnvironment = "REQLOCK_BENCH_PROFILE"

// profileKey is the key of a context that has the beginning of the names of CPU profiles.
type profileKey struct{}

// WithProfiles returns a context with which each process of Run writes the CPU profile of its job
// into a file. The names of the files begin with prefix.
func WithProfiles(ctx context.Context, prefix string) context.Context {
	return context.WithValue(ctx, profileKey{}, prefix)
}

// profileOf returns the name of the profile of a process, or "" for none.
func profileOf(ctx context.Context, process int) string {
	if prefix, ok := ctx.Value(profileKey{}).(string); ok {
		return fmt.Sprintf("%s.%d.pprof", prefix, process)
	}
	return ""
}

// runProfiled runs the job, and writes its CPU profile into the file, unless that is "".
func runProfiled(ctx context.Context, job Job, start time.Time, file string) (result any, err error) {
	if file == "" {
		return job.Run(ctx, start)
	}
	profile, err := os.Create(file) //nolint:gosec // the path is the parent's
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, profile.Close()) }()
	if err := pprof.StartCPUProfile(profile); err != nil {
		return nil, err
	}
	defer pprof.StopCPUProfile()
	return job.Run(ctx, start)
}

// readJob reads the job of this process.
func readJob(orders *json.Decoder, jobs []Job) (Job, error) {
	var o order
	if err := orders.Decode(&o); err != nil {
		return nil, err
	}
	for _, job := range jobs {
		if typeOf(job) == o.Type {
			return job, json.Unmarshal(o.Job, job)
		}
	}
	return nil, fmt.Errorf("no job has the type %s", o.Type)
}

// typeOf names the type of a job.
func typeOf(job Job) string { return fmt.Sprintf("%T", job) }
