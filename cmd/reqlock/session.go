package main

import (
	"io"
	"os"
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
