package redistest

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A path that impairs nothing would make a fault do nothing, and no check would notice.
func TestPathImpairsBytesUntilItIsRestored(t *testing.T) {
	t.Parallel()
	const latency = 30 * time.Millisecond
	server := Start(t)
	observer, network := server.Client(t), NewNetwork(t, server.Addr())
	for i, test := range []struct {
		name string
		use  func(p *Path)
		took time.Duration // by a command at least; -1 if it gets no reply
		runs bool          // on the server, although it gets no reply
		rst  bool          // the connection ends by itself, with a reset
	}{
		{"slow", func(p *Path) { p.Slow(latency, 0) }, 2 * latency, true, false},
		{"slow replies", func(p *Path) { p.SlowReplies(latency, 0) }, latency, true, false},
		{"throttled", func(p *Path) { p.Throttle(1000) }, 100 * time.Millisecond, true, false},
		{"half-open to the server", func(p *Path) { p.HalfOpen(ToServer) }, -1, false, false},
		{"half-open to the client", func(p *Path) { p.HalfOpen(ToClient) }, -1, true, false},
		{"reset", (*Path).Reset, -1, true, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			path, key := network.Path(i), fmt.Sprintf("%0100d", i)
			w := dialWire(t, path.Addr())
			increment := func(want int, least time.Duration) {
				begun := time.Now()
				w.send("INCR " + key)
				w.expect(fmt.Sprintf(":%d\r\n", want))
				if took := time.Since(begun); took < least {
					t.Errorf("took %v, want %v at least", took, least)
				}
			}
			increment(1, 0)
			test.use(path.To(server.Addr()))
			if test.took >= 0 {
				increment(2, test.took)
				path.Restore()
				increment(3, 0)
				return
			}
			w.send("INCR " + key)
			if test.runs {
				suite.Eventually(t, "the command runs", func() bool { return observer.Get(t.Context(), key).Val() == "2" })
			}
			if !test.rst {
				w.expectSilence()
				path.Restore()
			}
			_, err := w.reader.ReadByte()
			if err == nil || errors.Is(err, os.ErrDeadlineExceeded) || test.rst && !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("got %v, want the end of the connection", err)
			}
			path.Restore()
			if n := observer.Get(t.Context(), key).Val(); n != map[bool]string{true: "2", false: "1"}[test.runs] {
				t.Errorf("the value is %s", n)
			}
			w = dialWire(t, path.Addr())
			w.send("PING")
			w.expect("+PONG\r\n")
		})
	}
}

// The latency of each packet counts from its arrival, although the packets before it wait, too. The
// order stays.
func TestSlowPathDelaysPacketsAtOnce(t *testing.T) {
	t.Parallel()
	path := NewPath(t, Start(t).Addr())
	path.Slow(200*time.Millisecond, 100*time.Millisecond)
	w, begun := dialWire(t, path.Addr()), time.Now()
	for i := range 10 {
		w.send(fmt.Sprint("ECHO ", i))
		time.Sleep(10 * time.Millisecond)
	}
	for i := range 10 {
		w.expect(fmt.Sprintf("$1\r\n%d\r\n", i))
	}
	if took := time.Since(begun); took > 2*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestPathIsDown(t *testing.T) {
	t.Parallel()
	path := NewPath(t, Start(t).Addr())
	w := dialWire(t, path.Addr())
	path.Down()
	w.expectClosed()
	if conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", path.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("got %v, %v; want a refusal", conn, err)
	}
	path.Up()
	w = dialWire(t, path.Addr())
	w.send("PING")
	w.expect("+PONG\r\n")
}

func TestSliceMakesTinyPackets(t *testing.T) {
	t.Parallel()
	path := NewPath(t, Start(t).Addr())
	path.Slice()
	w := dialWire(t, path.Addr())
	w.reader = bufio.NewReaderSize(w.conn, 1<<16)
	w.send(fmt.Sprintf("ECHO %01000d", 1))
	if _, err := w.reader.Peek(1); err != nil || w.reader.Buffered() > 500 {
		t.Errorf("%d bytes arrived at once, %v", w.reader.Buffered(), err)
	}
	w.expect(fmt.Sprintf("$1000\r\n%01000d\r\n", 1))
}
