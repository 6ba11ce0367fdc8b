package main

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	testsuite "github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/bench/internal/compare"
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
	t.Parallel()
	dir := t.TempDir()
	out := runSuites(t, dir, "^(lone|keys-256(-cluster)?|first-lock|hot-(4x16|1x16|10x1)|holding-1024|waiting-1|burst-4x32|permits-(waiters-128|10x1)|shared-4x16-1ms|replicas-keys-64|idempotent-.*)$",
		"one goroutine, one key\n", "takes 1024 keys", "waits for 1 keys", "on a Redis Cluster of 3 masters", "4 processes of 16 goroutines, one key, empty section\n",
		"128 goroutines of one process", "8 permits", "90 % of the turns read", "on a master with 2 replicas", "32 clients, one key", "memory/answer")
	if !regexp.MustCompile(`(?m)^reqlock +[\d,]+ +100 % +2\.00 .* [1-9]\d*\.\d$`).MatchString(out) {
		t.Error("no lock of one goroutine has two commands, and allocations:\n" + out)
	}
	if served := regexp.MustCompile(`(takes 1024|waits for 1) keys.*\n.*\n.*\nreqlock .* B +0\n`).FindAllString(out, -1); len(served) != 2 {
		t.Error("keys have starved:\n" + out)
	}
	if !regexp.MustCompile(`(?m)^raw pipelined .* 2\.00 +0\.0312 `).MatchString(out) {
		t.Error("a pipeline has not two commands for each of 32 keys:\n" + out)
	}
	if _, rows, _ := strings.Cut(out, "\ngoals "); !regexp.MustCompile(`\nfirst lock  .* held\n`).MatchString(rows) || strings.Contains(rows, " -  ") {
		t.Error("a goal is missing, or is compared with nothing:\n" + rows)
	}
	for _, file := range []string{"hot-handoffs.svg", "burst-4x32.raw-go-redis.0.3.pprof"} {
		if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
			t.Error(err)
		}
	}
}

func TestGoalsNameSuitesAndContestants(t *testing.T) {
	t.Setenv("REQLOCK_BENCH_SERVERS", "valkey9 9.0 /nowhere")
	there := make(map[compare.Cell]bool)
	for _, s := range (program{}).suites(t) {
		for _, contestant := range s.Contestants {
			there[compare.Cell{Suite: s.Name, Contestant: contestant}] = true
		}
	}
	for _, g := range goals() {
		for _, c := range append(g.Anchors, g.Reached) {
			if c = (compare.Cell{Suite: cmp.Or(c.Suite, g.Reached.Suite), Contestant: cmp.Or(c.Contestant, g.Reached.Contestant)}); !there[c] {
				t.Errorf("%s: there is no %v", g.Case, c)
			}
		}
	}
}

// Beside the other suites, because a server votes in a quorum after the TTL of a lock only.
func TestProgramOnAQuorum(t *testing.T) {
	t.Parallel()
	runSuites(t, "", "^quorum-3-keys-64$", "on 3 servers of a quorum")
}

// runSuites runs suites, and checks that they print some texts. It returns what they print.
func runSuites(t *testing.T, pictures, names string, wants ...string) string {
	t.Helper()
	redistest.Program(t)
	var out, progress bytes.Buffer
	p := program{out: &out, progress: &progress, window: 50 * time.Millisecond, repetitions: 1, rounds: 1, pictures: pictures, profiles: pictures}
	if err := p.run(t.Context(), names); err != nil {
		t.Errorf("%v\n%s", err, progress.String())
	}
	for _, want := range wants {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not printed:\n%s", want, &out)
		}
	}
	return out.String()
}
