package redistest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

const (
	// readyTimeout bounds the wait for a process to do what it was told. It is
	// generous, because it only matters when something is broken.
	readyTimeout = 15 * time.Second

	// readyPoll is the pause between two questions whether a server answers.
	readyPoll = 5 * time.Millisecond
)

// errExited says that the process ended before it answered.
var errExited = errors.New("redis-server has exited")

// awaitReady returns when the process, and not just anything, answers at addr. It
// is asked by this user, if it is not to be asked by just anybody.
func awaitReady(proc *process, addr, user string) error {
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
	for {
		err := ask(ctx, addr, user, proc.child.Pid)
		// The server that answers may be a foreign one which was faster in
		// taking the port. It has another process number; but with a password
		// set the number can not be asked for, so look at the process last.
		if proc.exited() {
			return errExited
		}
		if err == nil {
			return nil
		}
		select {
		case <-proc.done:
			return errExited
		case <-ctx.Done():
			return fmt.Errorf("no answer in %v: %w", readyTimeout, err)
		case <-time.After(readyPoll):
		}
	}
}

// ask succeeds when the server with this process number answers at addr. It
// does not use a client, because clients have their own ideas about when to
// try again.
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

	question := "*1\r\n$4\r\nPING\r\n" + "*2\r\n$4\r\nINFO\r\n$6\r\nserver\r\n"
	if user != "" {
		question = fmt.Sprintf("*3\r\n$4\r\nAUTH\r\n$%d\r\n%s\r\n$1\r\nx\r\n", len(user), user) + question
	}
	if _, err := io.WriteString(conn, question); err != nil {
		return err
	}
	reader := bufio.NewReader(conn)
	var welcome, pong, info bytes.Buffer
	if user != "" {
		if _, err := skipReply(reader, &welcome); err != nil {
			return err
		}
	}
	if _, err := skipReply(reader, &pong); err != nil {
		return err
	}
	if bytes.HasPrefix(pong.Bytes(), []byte("-NOAUTH")) {
		return nil // up, with a password that is not known here
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
