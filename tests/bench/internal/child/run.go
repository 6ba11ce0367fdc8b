package child

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

const (
	// startLead is the time from the signal to the beginning, in which all
	// children hear of it.
	startLead = 20 * time.Millisecond
	// endTime is how long a child may take to end after its input has.
	endTime = 10 * time.Second
)

// Options are what Run can be told besides the jobs.
type Options struct {
	// Begin is called when all children are ready, before they begin.
	Begin func() error
	// Profile returns where the child with this number writes a CPU profile;
	// nil, or an empty path, for none.
	Profile func(child int) string
}

// Run does each job in a process of its own, all at the same time, and returns
// their results. When it returns all processes have ended.
func Run[R any](ctx context.Context, jobs []Job, o Options) (results []R, err error) {
	children := make([]*process, 0, len(jobs))
	defer func() {
		for _, c := range children {
			err = errors.Join(err, c.end())
		}
	}()
	for i, job := range jobs {
		path := ""
		if o.Profile != nil {
			path = o.Profile(i)
		}
		c, err := start(ctx, job, path)
		if err != nil {
			return nil, err
		}
		children = append(children, c)
	}
	for _, c := range children {
		if _, err := c.hear(); err != nil {
			return nil, err
		}
	}
	if o.Begin != nil {
		if err := o.Begin(); err != nil {
			return nil, err
		}
	}
	signal := signal{Start: time.Now().Add(startLead)}
	for _, c := range children {
		if err := c.say.Encode(signal); err != nil {
			return nil, err
		}
	}
	return collect[R](children)
}

// collect returns what all children answer.
func collect[R any](children []*process) ([]R, error) {
	results := make([]R, len(children))
	errs := make([]error, len(children))
	var listeners sync.WaitGroup
	for i, c := range children {
		listeners.Go(func() {
			var answer json.RawMessage
			if answer, errs[i] = c.hear(); errs[i] == nil {
				errs[i] = json.Unmarshal(answer, &results[i])
			}
		})
	}
	listeners.Wait()
	return results, errors.Join(errs...)
}

// A process is a child, as its parent sees it.
type process struct {
	cmd     *exec.Cmd
	stdin   io.Closer
	say     *json.Encoder
	replies *json.Decoder
	cancel  context.CancelFunc
}

// start starts a child and gives it its job.
func start(ctx context.Context, job Job, profile string) (*process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	fields, err := json.Marshal(job)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, program) //nolint:gosec // this program
	cmd.Env = append(os.Environ(), environment+"=1")
	cmd.Stderr = os.Stderr
	stdin, inErr := cmd.StdinPipe()
	stdout, outErr := cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr); err != nil {
		cancel()
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		cancel()
		return nil, err
	}
	c := &process{cmd, stdin, json.NewEncoder(stdin), json.NewDecoder(stdout), cancel}
	if err := c.say.Encode(order{Kind: job.Kind(), Profile: profile, Job: fields}); err != nil {
		return nil, errors.Join(err, c.end())
	}
	return c, nil
}

// hear waits for the child's next reply.
func (c *process) hear() (json.RawMessage, error) {
	var r reply
	if err := c.replies.Decode(&r); err != nil {
		return nil, fmt.Errorf("a child does not answer: %w", err)
	}
	if r.Error != "" {
		return nil, errors.New(r.Error)
	}
	return r.Result, nil
}

// end lets the child end, and kills it if it does not.
func (c *process) end() error {
	_ = c.stdin.Close()
	kill := time.AfterFunc(endTime, c.cancel)
	defer kill.Stop()
	defer c.cancel()
	return c.cmd.Wait()
}
