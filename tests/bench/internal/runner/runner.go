package runner

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/tests/bench/internal/redisserver"
)

// A Runner runs suites.
type Runner struct {
	TB          testing.TB // ends the servers at the end of the program
	Server      *redisserver.Server
	Dir         string        // for files of a run
	Window      time.Duration // the duration of a run, unless its suite needs more
	Repetitions int           // how often each run is repeated
	Rounds      int           // the number of rounds of a burst
	Largest     int           // the largest number of keys or waiters in the growth suites
	Profiles    string        // the directory for CPU profiles; "" for none
	Progress    io.Writer     // prints the progress
	Quarantine  time.Duration // how long the servers of a quorum must run before they are used

	quorum *redisserver.Nodes
}

// Quorum returns that many independent servers, at most MaxQuorum, which have run for longer than
// the quarantine. They start at the first call, and all suites share them: each start takes a
// quarantine. A failure fails tb, or the TB of the runner.
func (l *Runner) Quorum(tb testing.TB, count int) *redisserver.Nodes {
	tb.Helper()
	if l.quorum == nil {
		l.quorum = redisserver.StartNodes(l.TB, MaxQuorum)
	}
	nodes := l.quorum.First(count)
	if err := nodes.AwaitAge(tb.Context(), l.Quarantine); err != nil {
		tb.Fatalf("wait until the servers of a quorum have run for %v: %v", l.Quarantine, err)
	}
	return nodes
}

// MaxQuorum is the largest number of servers in a quorum.
const MaxQuorum = 5

// Repeat calls run for each of n contestants in each repetition. Each repetition begins
// with another contestant, so that neither the order nor a busy period of the machine
// favors one of them.
func (l *Runner) Repeat(suite string, n int, run func(repetition, contestant int) error) error {
	fmt.Fprintf(l.Progress, "%s ", suite)
	began := time.Now()
	for repetition := range l.Repetitions {
		for i := range n {
			if err := run(repetition, (repetition+i)%n); err != nil {
				fmt.Fprintln(l.Progress)
				return fmt.Errorf("%s: %w", suite, err)
			}
			fmt.Fprint(l.Progress, ".")
		}
	}
	fmt.Fprintf(l.Progress, " %.1f s\n", time.Since(began).Seconds())
	return nil
}

// Profile returns a function that returns the file for the CPU profile of a child, for
// jobprocess.Options.
func (l *Runner) Profile(suite, contestant string, repetition int) func(child int) string {
	return func(child int) string {
		if l.Profiles == "" {
			return ""
		}
		name := fmt.Sprintf("%s-%s-%d-%d.pprof", suite, contestant, repetition+1, child+1)
		return filepath.Join(l.Profiles, strings.NewReplacer(" ", "-", "/", "-").Replace(name))
	}
}
