package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestAFileIsNoTerminal(t *testing.T) {
	t.Parallel()
	file := must(os.Create(filepath.Join(t.TempDir(), "file")))(t)
	defer file.Close()
	device := must(os.Open(os.DevNull))(t)
	defer device.Close()
	s := newSession()
	if s.isTerminal(file) || !s.isTerminal(device) || s.isTerminal("another stream") {
		t.Error("a file or another stream is a terminal, or a device is none")
	}
}

// On a terminal, a command that takes long says so, and removes the line.
func TestALongScanShowsItsProgress(t *testing.T) {
	t.Parallel()
	server, _, o := start(t)
	o.isTerminal = true
	ticks := make(chan time.Time)
	o.ticks = ticks
	server.Pause()
	ended := make(chan result, 1)
	go func() { ended <- o.runUntil(t.Context(), "ls") }()
	ticks <- time.Now()
	ticks <- time.Now()
	server.Resume()
	r := suite.Receive(t, "ls ends", ended)
	if !strings.HasPrefix(r.problems, "\rlooking through the keys of Redis, 1s \rlooking through the keys of Redis, 2s \r\x1b[K") {
		t.Errorf("%q", r.problems)
	}
}
