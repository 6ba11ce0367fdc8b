package network

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

// A rawConn is a connection to a server on a path.
type rawConn struct {
	t      *testing.T
	conn   net.Conn
	reader *bufio.Reader
}

func dial(t *testing.T, addr string) *rawConn {
	t.Helper()
	var dialer net.Dialer
	conn, err := dialer.DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return &rawConn{t, conn, bufio.NewReader(conn)}
}

func (w *rawConn) send(command string) {
	w.t.Helper()
	args := strings.Fields(command)
	text := "*" + string(rune('0'+len(args))) + "\r\n"
	for _, arg := range args {
		text += "$" + string(rune('0'+len(arg))) + "\r\n" + arg + "\r\n"
	}
	if _, err := io.WriteString(w.conn, text); err != nil {
		w.t.Fatal(err)
	}
}

func (w *rawConn) expect(want string) {
	w.t.Helper()
	if got, err := w.reader.ReadString('\n'); err != nil || got != want+"\r\n" {
		w.t.Fatalf("got %q, %v, want %q", got, err, want)
	}
}

// readEnd returns the error that ends the connection. No byte may come before it.
func (w *rawConn) readEnd() error {
	w.t.Helper()
	got, err := w.reader.ReadString('\n')
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		w.t.Fatalf("got %q, %v, want the end", got, err)
	}
	return err
}
