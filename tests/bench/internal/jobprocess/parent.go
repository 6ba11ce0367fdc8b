package jobprocess

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/reqlock/reqlock/tests/bench/internal/redisserver"
)

const (
	// startLead is the time from the start message to the start. All children must receive the
	// message within it.
	startLead = 20 * time.Millisecond
	// endTime is how long a child may take to end after its input has ended.
	endTime = 10 * time.Second
)

// Run runs each job in its own process, all at the same time, and returns the results. The CPU time
// of the servers is that between the start of the jobs, when all children are ready, and their end.
// When Run returns, all processes have ended.
func Run[R any](ctx context.Context, on *redisserver.Servers, jobs ...Job) (results []R, serverCPU time.Duration, err error) {
	children := make([]*child, 0, len(jobs))
	defer func() {
		for _, c := range children {
			err = errors.Join(err, c.end())
		}
	}()
	for i, job := range jobs {
		c, err := start(ctx, job, i)
		if err != nil {
			return nil, 0, err
		}
		children = append(children, c)
	}
	for _, c := range children {
		if _, err := c.receive(); err != nil {
			return nil, 0, err
		}
	}
	before, err := on.CPU(ctx)
	if err != nil {
		return nil, 0, err
	}
	begin := time.Now().Add(startLead)
	for _, c := range children {
		if err := c.orders.Encode(begin); err != nil {
			return nil, 0, err
		}
	}
	results = make([]R, len(children))
	for i, c := range children {
		text, err := c.receive()
		if err != nil {
			return nil, 0, err
		}
		if err := json.Unmarshal(text, &results[i]); err != nil {
			return nil, 0, err
		}
	}
	after, err := on.CPU(ctx)
	return results, after - before, err
}

// A child is a process, as its parent sees it.
type child struct {
	cmd     *exec.Cmd
	stdin   io.Closer
	orders  *json.Encoder
	replies *json.Decoder
	kill    context.CancelFunc
}

// start starts a child and sends its job.
func start(ctx context.Context, job Job, process int) (*child, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	fields, err := json.Marshal(job)
	if err != nil {
		return nil, err
	}
	ctx, kill := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, program) //nolint:gosec // this program
	cmd.Env = append(os.Environ(), environment+"=1", profileEnvironment+"="+profileOf(ctx, process))
	cmd.Stderr = os.Stderr
	stdin, inErr := cmd.StdinPipe()
	stdout, outErr := cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr); err != nil {
		kill()
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		kill()
		return nil, err
	}
	c := &child{cmd, stdin, json.NewEncoder(stdin), json.NewDecoder(stdout), kill}
	if err := c.orders.Encode(order{Type: typeOf(job), Job: fields}); err != nil {
		return nil, errors.Join(err, c.end())
	}
	return c, nil
}

// receive waits for the next reply of the child.
func (c *child) receive() (json.RawMessage, error) {
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
func (c *child) end() error {
	_ = c.stdin.Close()
	late := time.AfterFunc(endTime, c.kill)
	defer late.Stop()
	defer c.kill()
	return c.cmd.Wait()
}
