package lab

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/reqlock/reqlock/tests/bench/internal/redisserver"
)

// A Lab is where suites run.
type Lab struct {
	Server      *redisserver.Server
	Dir         string        // for files of a run
	Window      time.Duration // how long a run takes, unless its suite needs more
	Repetitions int           // how often each run is repeated
	Rounds      int           // how many rounds a burst has
	Largest     int           // up to how many keys or waiters the growing suites go
	Profiles    string        // where CPU profiles go; empty for none
	Progress    io.Writer     // is told what runs
	Quarantine  time.Duration // how long the servers of a quorum have to run before they are used

	quorum *redisserver.Nodes
}

// Quorum returns so many servers that know nothing of each other, at most
// MaxQuorum. They start when they are first needed, and are those of all suites:
// each start costs a quarantine.
func (l *Lab) Quorum(ctx context.Context, count int) (*redisserver.Nodes, error) {
	if l.quorum == nil {
		nodes, err := redisserver.StartNodes(ctx, MaxQuorum)
		if err != nil {
			return nil, err
		}
		l.quorum = nodes
	}
	return l.quorum.First(count), l.quorum.AwaitAge(ctx, l.Quarantine)
}

// MaxQuorum is how many servers a quorum has at most.
const MaxQuorum = 5

// Close ends the servers of a quorum, if there are some.
func (l *Lab) Close() error {
	if l.quorum == nil {
		return nil
	}
	return l.quorum.Stop()
}

// Turns calls run for each of n contestants in each repetition. They take turns,
// and each repetition begins with another one, so that a busy moment of the
// machine, or a place in the order, favours nobody.
func (l *Lab) Turns(suite string, n int, run func(repetition, contestant int) error) error {
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

// Profile returns where the children of a run write their CPU profiles, for
// child.Options.
func (l *Lab) Profile(suite, contestant string, repetition int) func(child int) string {
	return func(child int) string {
		if l.Profiles == "" {
			return ""
		}
		name := fmt.Sprintf("%s-%s-%d-%d.pprof", suite, contestant, repetition+1, child+1)
		return filepath.Join(l.Profiles, strings.NewReplacer(" ", "-", "/", "-").Replace(name))
	}
}
