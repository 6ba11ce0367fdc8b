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
	if jobprocess.Is() {
		os.Exit(jobprocess.Main(newJob))
	}
	testsuite.Main(m)
}

// A suite of each kind runs, as short as possible, from the server to the charts.
func TestProgram(t *testing.T) {
	redistest.Program(t)
	dir := t.TempDir()
	var out, progress bytes.Buffer
	p := program{
		out: &out, progress: &progress,
		only:   regexp.MustCompile("^(lone|cluster|hot-4x16|permits-4x16|permits-10x1|shared-4x16-1ms|replicas-keys-64|quorum-3-burst-4x32|middleware|frameworks|idempotent|records|grow-.*)$"),
		window: 50 * time.Millisecond, repetitions: 1, rounds: 1, largest: 10,
		json: filepath.Join(dir, "out", "runs.json"), plots: filepath.Join(dir, "plots"), profiles: filepath.Join(dir, "profiles"),
	}
	if code := p.run(t.Context()); code != exitRight {
		t.Fatalf("exit code %d\n%s%s", code, out.String(), progress.String())
	}
	for _, want := range []string{
		"one goroutine, one key", "on a Redis Cluster of 3 masters", "on a master with 2 replicas", "on 3 servers of a quorum", "one hot key, 4 processes", "8 permits", "9 of 10 turns read", "framework", "of plain", "memory/record", "memory/held key", "memory/waiter", "verdict",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not printed:\n%s", want, out.String())
		}
	}
	for _, pattern := range []string{"out/runs.json", "plots/hot-handoffs.svg", "plots/cluster-locks.svg", "plots/permits-handoffs.svg", "plots/shared-locks.svg", "plots/replicas-locks.svg", "plots/quorum-burst-locks.svg", "plots/idempotent-requests.svg", "profiles/hot-4x16-reqlock-1-4.pprof"} {
		if _, err := os.Stat(filepath.Join(dir, pattern)); err != nil {
			t.Error(err)
		}
	}
}

func TestProgramWithoutRedisReportsWhatToInstall(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("REQLOCK_REDIS_SERVER", "")
	var out, progress bytes.Buffer
	p := program{out: &out, progress: &progress, only: regexp.MustCompile("^lone$")}
	if code := p.run(t.Context()); code != exitCannotBegin || !strings.Contains(progress.String(), "redis-server is not on PATH: install it") {
		t.Errorf("exit code %d: %s", code, progress.String())
	}
}

// -run selects suites by name, so names must be unique.
func TestSuitesHaveNamesOfTheirOwn(t *testing.T) {
	seen := make(map[string]bool)
	for _, s := range suites() {
		if seen[s.name] {
			t.Errorf("two suites are named %q", s.name)
		}
		seen[s.name] = true
	}
}
