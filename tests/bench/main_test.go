package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	testsuite "github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/bench/internal/jobprocess"
)

// TestMain runs the tests, or the job of a child that a test has started.
func TestMain(m *testing.M) {
	if jobprocess.IsChild() {
		os.Exit(runChild())
	}
	testsuite.Main(m)
}

// A suite of each kind runs, as short as possible, from the servers to the pictures.
func TestProgram(t *testing.T) {
	redistest.Program(t)
	dir := t.TempDir()
	var out, progress bytes.Buffer
	p := program{out: &out, progress: &progress, window: 50 * time.Millisecond, repetitions: 1, rounds: 1, pictures: dir}
	err := p.run(t.Context(), "^(lone|keys-256-cluster|hot-4x16|waiters-128|burst-4x32|permits-(4x16|10x1)|shared-4x16-1ms|"+
		"replicas-keys-64|quorum-3-burst-4x32|idempotent-.*)$")
	if err != nil {
		t.Errorf("%v\n%s", err, progress.String())
	}
	for _, want := range []string{
		"one goroutine, one key\n", "on a Redis Cluster of 3 masters", "4 processes of 16 goroutines, one key, empty section\n",
		"128 goroutines of one process", "8 permits", "90 % of the turns read", "on a master with 2 replicas",
		"on 3 servers of a quorum", "32 clients, one key", "memory/answer",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not printed", want)
		}
	}
	if !regexp.MustCompile(`(?m)^reqlock +[\d,]+ +100 % +2\.00 .* [1-9]\d*\.\d$`).MatchString(out.String()) {
		t.Error("no lock of one goroutine has two commands, and allocations")
	}
	if _, err := os.Stat(filepath.Join(dir, "hot-handoffs.svg")); err != nil {
		t.Error(err)
	}
	if t.Failed() {
		t.Log(out.String())
	}
}
