package redistest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	// agreeTimeout bounds the wait for servers to agree. It has room for elections without
	// a winner.
	agreeTimeout = 30 * time.Second

	// agreePoll is the pause between two polls.
	agreePoll = 20 * time.Millisecond

	// idleTimeout is the timeout after which a master is replaced while the test expects no
	// failover.
	idleTimeout = time.Minute

	// logTail is how many bytes of the log of each server a failure shows.
	logTail = 2000
)

// group is servers that are connected to each other.
type group []*Server

func (g group) start(tb testing.TB) {
	tb.Helper()
	failures := make([]error, len(g))
	var starting sync.WaitGroup
	for i, s := range g {
		starting.Go(func() {
			if err := s.start(); err != nil {
				failures[i] = fmt.Errorf("%w\n%s", err, s.log())
			}
		})
	}
	starting.Wait()
	if err := errors.Join(failures...); err != nil {
		tb.Fatalf("start redis-server: %v", err)
	}
}

// up returns the running servers: neither killed nor paused.
func (g group) up() group {
	var up group
	for _, s := range g {
		if s.isUp() {
			up = append(up, s)
		}
	}
	return up
}

func (g group) at(addr string) *Server {
	for _, s := range g {
		if s.Addr() == addr {
			return s
		}
	}
	return nil
}

// await calls ask until it returns no error. The error names what is missing.
func (g group) await(tb testing.TB, what string, ask func(ctx context.Context) error) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), agreeTimeout)
	defer cancel()
	for {
		err := ask(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			tb.Fatalf("timed out waiting for %s: %v\n%s", what, err, g.logs())
		case <-time.After(agreePoll):
		}
	}
}

func (g group) logs() string {
	var logs strings.Builder
	for _, s := range g {
		log := s.log()
		fmt.Fprintf(&logs, "--- %s\n%s\n", s.Addr(), log[max(0, len(log)-logTail):])
	}
	return logs.String()
}
