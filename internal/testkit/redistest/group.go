package redistest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/child"
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

const (
	// readyTimeout bounds the wait for a process. It is long, because it matters only if
	// something is broken.
	readyTimeout = 15 * time.Second

	// readyPoll is the pause between two checks whether a server answers.
	readyPoll = 5 * time.Millisecond
)

// errExited is that the process ended before it answered.
var errExited = errors.New("redis-server has exited")

// awaitReady returns when this process answers at addr. User is the user of the connection,
// or "" for the default user.
func awaitReady(proc *child.Process, addr, user string) error {
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
	for {
		err := ask(ctx, addr, user, proc.Pid())
		// Another server that took the port may answer. It has another process id, but with
		// a password the id cannot be read. So the last check is whether the process runs.
		if proc.HasEnded() {
			return errExited
		}
		if err == nil {
			return nil
		}
		select {
		case <-proc.Done():
			return errExited
		case <-ctx.Done():
			return fmt.Errorf("no answer in %v: %w", readyTimeout, err)
		case <-time.After(readyPoll):
		}
	}
}

// ask succeeds if the server with this process id answers at addr. It uses no client,
// because clients retry.
func ask(ctx context.Context, addr, user string, pid int) error {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return err
		}
	}

	commands := "*1\r\n$4\r\nPING\r\n" + "*2\r\n$4\r\nINFO\r\n$6\r\nserver\r\n"
	if user != "" {
		commands = fmt.Sprintf("*3\r\n$4\r\nAUTH\r\n$%d\r\n%s\r\n$1\r\nx\r\n", len(user), user) + commands
	}
	if _, err := io.WriteString(conn, commands); err != nil {
		return err
	}
	reader := bufio.NewReader(conn)
	var auth, pong, info bytes.Buffer
	if user != "" {
		if _, err := skipReply(reader, &auth); err != nil {
			return err
		}
	}
	if _, err := skipReply(reader, &pong); err != nil {
		return err
	}
	if bytes.HasPrefix(pong.Bytes(), []byte("-NOAUTH")) {
		return nil // it runs, with a password
	}
	if pong.String() != "+PONG\r\n" {
		return fmt.Errorf("server answers %q", pong.String())
	}
	if _, err := skipReply(reader, &info); err != nil {
		return err
	}
	if !bytes.Contains(info.Bytes(), fmt.Appendf(nil, "\r\nprocess_id:%d\r\n", pid)) {
		return errors.New("another server answers")
	}
	return nil
}
