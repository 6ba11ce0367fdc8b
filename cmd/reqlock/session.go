package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// A session is what a run has of the world outside.
type session struct {
	in            io.Reader
	out, problems io.Writer
	getenv        func(name string) string
	// isTerminal reports whether a person is at the other end of in, out or problems.
	isTerminal func(stream any) bool
	// ticks returns a channel that receives the time at each interval, until stop is called.
	ticks func(interval time.Duration) (times <-chan time.Time, stop func())
}

// An output keeps the error of a write, so that a list that nobody gets is no success.
type output struct {
	io.Writer

	err error
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	if err != nil {
		o.err = err
	}
	return n, err
}

// newSession returns the session of the process.
func newSession() session {
	return session{
		in: os.Stdin, out: os.Stdout, problems: os.Stderr, getenv: os.Getenv,
		isTerminal: func(stream any) bool {
			if out, isOutput := stream.(*output); isOutput {
				stream = out.Writer
			}
			file, isFile := stream.(*os.File)
			if !isFile {
				return false
			}
			info, err := file.Stat()
			return err == nil && info.Mode()&os.ModeCharDevice != 0
		},
		ticks: func(interval time.Duration) (<-chan time.Time, func()) {
			ticker := time.NewTicker(interval)
			return ticker.C, ticker.Stop
		},
	}
}

// hasEscapes reports whether a stream may get terminal escapes.
func (s *session) hasEscapes(stream io.Writer) bool {
	return s.getenv("NO_COLOR") == "" && s.getenv("TERM") != "dumb" && s.isTerminal(stream)
}

// confirm asks a person to type the digest of a key before something that may let two handlers act. Without a
// terminal, only yes is an answer.
func (c *call) confirm(ctx context.Context, what, question, digest string, yes bool) error {
	switch {
	case yes:
		return nil
	case !c.isTerminal(c.in):
		return misuse("%s needs an answer on a terminal, or --yes", what)
	}
	fmt.Fprint(c.problems, question)
	answer, err := typed(ctx, func() (string, error) { return bufio.NewReader(c.in).ReadString('\n') })
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(c.problems)
		return err
	case strings.TrimSpace(answer) != digest:
		return errors.New("not confirmed: nothing was done")
	}
	return nil
}

// typed returns what a function reads, or the error of a context that ends before that.
func typed[T any](ctx context.Context, read func() (T, error)) (result T, err error) {
	ended := make(chan struct{})
	var got T
	var failed error
	go func() {
		defer close(ended)
		got, failed = read()
	}()
	select {
	case <-ended:
		return got, failed
	case <-ctx.Done():
		return result, ctx.Err()
	}
}

// within calls a function with a context that ends after --timeout. On a terminal, it shows how long
// the call takes.
func (c *call) within(ctx context.Context, do func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	if !c.hasEscapes(c.problems) {
		return do(ctx)
	}
	ended, hasEnded := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(hasEnded)
		seconds, stop := c.ticks(time.Second)
		defer stop()
		for n := 1; ; n++ {
			select {
			case <-seconds:
				fmt.Fprintf(c.problems, "\rlooking through the keys of Redis, %ds ", n)
			case <-ended:
				if n > 1 {
					fmt.Fprint(c.problems, "\r\x1b[K")
				}
				return
			}
		}
	}()
	defer func() {
		close(ended)
		<-hasEnded
	}()
	return do(ctx)
}
