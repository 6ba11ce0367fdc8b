package jobprocess

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
	// startLead is the time from the start message to the start. All children must receive
	// the message within it.
	startLead = 20 * time.Millisecond
	// endTime is how long a child may take to end after its input has ended.
	endTime = 10 * time.Second
)

// Options are the options of Run.
type Options struct {
	// Begin is called when all children are ready, before they start.
	Begin func() error
	// Profile returns the file for the CPU profile of a child; nil or "" for none.
	Profile func(child int) string
}

// Run runs each job in its own process, all at the same time, and returns the results. When
// it returns, all processes have ended.
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
		if _, err := c.receive(); err != nil {
			return nil, err
		}
	}
	if o.Begin != nil {
		if err := o.Begin(); err != nil {
			return nil, err
		}
	}
	signal := startMessage{Start: time.Now().Add(startLead)}
	for _, c := range children {
		if err := c.say.Encode(signal); err != nil {
			return nil, err
		}
	}
	return collect[R](children)
}

// collect returns the replies of all children.
func collect[R any](children []*process) ([]R, error) {
	results := make([]R, len(children))
	errs := make([]error, len(children))
	var listeners sync.WaitGroup
	for i, c := range children {
		listeners.Go(func() {
			var answer json.RawMessage
			if answer, errs[i] = c.receive(); errs[i] == nil {
				errs[i] = json.Unmarshal(answer, &results[i])
			}
		})
	}
	listeners.Wait()
	return results, errors.Join(errs...)
}

// A process is a child, in its parent.
type process struct {
	cmd     *exec.Cmd
	stdin   io.Closer
	say     *json.Encoder
	replies *json.Decoder
	cancel  context.CancelFunc
}

// start starts a child and sends its job.
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
	if err := c.say.Encode(jobMessage{Kind: job.Kind(), Profile: profile, Job: fields}); err != nil {
		return nil, errors.Join(err, c.end())
	}
	return c, nil
}

// receive waits for the next reply of the child.
func (c *process) receive() (json.RawMessage, error) {
	var r reply
	if err := c.replies.Decode(&r); err != nil {
		return nil, fmt.Errorf("a child does not answer: %w", err)
	}
	if r.Error != "" {
		return nil, errors.New(r.Error)
	}
	return r.Result, nil
}

// end closes the child's input, and kills the child if it does not end.
func (c *process) end() error {
	_ = c.stdin.Close()
	kill := time.AfterFunc(endTime, c.cancel)
	defer kill.Stop()
	defer c.cancel()
	return c.cmd.Wait()
}
