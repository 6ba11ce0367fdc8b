package main

import (
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

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
