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

// newSession returns the session of the process.
func newSession() session {
	return session{
		in: os.Stdin, out: os.Stdout, problems: os.Stderr, getenv: os.Getenv,
		isTerminal: func(stream any) bool {
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
