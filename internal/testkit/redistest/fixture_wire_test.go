package redistest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

// wire is a connection without a pool, a handshake and retries.
type wire struct {
	t      *testing.T
	conn   net.Conn
	reader *bufio.Reader
}

func dialWire(t *testing.T, addr string) *wire {
	t.Helper()
	var dialer net.Dialer
	conn, err := dialer.DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	w := &wire{t: t, conn: conn, reader: bufio.NewReader(conn)}
	w.deadline(readyTimeout)
	return w
}

// encode returns commands, whose arguments spaces separate, as a client sends them.
func encode(commands ...string) []byte {
	var out bytes.Buffer
	for _, command := range commands {
		args := strings.Fields(command)
		fmt.Fprintf(&out, "*%d\r\n", len(args))
		for _, arg := range args {
			fmt.Fprintf(&out, "$%d\r\n%s\r\n", len(arg), arg)
		}
	}
	return out.Bytes()
}

func (w *wire) send(commands ...string) {
	w.t.Helper()
	if _, err := w.conn.Write(encode(commands...)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *wire) expect(want string) {
	w.t.Helper()
	if got := w.next(); got != want {
		w.t.Fatalf("got %q, want %q", got, want)
	}
}

func (w *wire) next() string {
	w.t.Helper()
	var raw bytes.Buffer
	if _, err := skipReply(w.reader, &raw); err != nil {
		w.t.Fatalf("read reply: %v", err)
	}
	return raw.String()
}

// expectSilence asserts that for 30 ms no reply arrives and the connection stays open.
func (w *wire) expectSilence() {
	w.t.Helper()
	w.deadline(30 * time.Millisecond)
	_, err := w.reader.Peek(1)
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		w.t.Fatalf("got %v, want silence", err)
	}
	w.deadline(readyTimeout)
}

func (w *wire) deadline(timeout time.Duration) {
	w.t.Helper()
	if err := w.conn.SetReadDeadline(time.Now().Add(timeout)); err != nil {
		w.t.Fatal(err)
	}
}

// hangUp closes the connection, as a client does after a timeout.
func (w *wire) hangUp() {
	w.t.Helper()
	if err := w.conn.Close(); err != nil {
		w.t.Fatal(err)
	}
}

// expectClosed asserts that the connection is closed without another reply.
func (w *wire) expectClosed() {
	w.t.Helper()
	rest, err := io.ReadAll(w.reader)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		w.t.Fatal("connection is still open")
	}
	if len(rest) > 0 {
		w.t.Fatalf("got %q before the end", rest)
	}
}
