package network

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// A user uses one path: it increments a key of its own.
type user struct {
	*testing.T
	path  *Path
	addr  string // of its link
	admin *redis.Client
	key   string

	conn  net.Conn
	reply *bufio.Reader
}

func (u *user) dial() {
	u.Helper()
	conn, err := new(net.Dialer).DialContext(u.Context(), "tcp", u.addr)
	if err != nil {
		u.Fatal(err)
	}
	u.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		u.Fatal(err)
	}
	u.conn, u.reply = conn, bufio.NewReader(conn)
}

// increment sends a command that increments the key.
func (u *user) increment() {
	u.Helper()
	if _, err := io.WriteString(u.conn, "*2\r\n$4\r\nINCR\r\n$"+strconv.Itoa(len(u.key))+"\r\n"+u.key+"\r\n"); err != nil {
		u.Fatal(err)
	}
}

// expectReply reads the reply with a value.
func (u *user) expectReply(value int) {
	u.Helper()
	if line, err := u.reply.ReadString('\n'); err != nil || line != ":"+strconv.Itoa(value)+"\r\n" {
		u.Errorf("got %q, %v; want %d", line, err, value)
	}
}

// expectEnd reads the error that ends the connection. No reply may come before it.
func (u *user) expectEnd() error {
	u.Helper()
	line, err := u.reply.ReadString('\n')
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		u.Errorf("got %q, %v; want the end of the connection", line, err)
	}
	return err
}

// expectSilence waits for a reply, in vain.
func (u *user) expectSilence() {
	u.Helper()
	_ = u.conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if line, err := u.reply.ReadString('\n'); !errors.Is(err, os.ErrDeadlineExceeded) {
		u.Errorf("got %q, %v; want no reply", line, err)
	}
	_ = u.conn.SetReadDeadline(time.Now().Add(time.Minute))
}

// awaitValue returns when the server has executed the command.
func (u *user) awaitValue(value string) {
	u.Helper()
	suite.Eventually(u, "the command is executed", func() bool { return u.admin.Get(u.Context(), u.key).Val() == value })
}

// A path that impairs nothing would make a fault do nothing, and no check would notice.
func TestPathImpairsBytesUntilItIsRestored(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	n := Start(t, server.Addr())
	const latency = 30 * time.Millisecond
	timed := func(u *user, least time.Duration) {
		begun := time.Now()
		u.increment()
		u.expectReply(2)
		if took := time.Since(begun); took < least {
			u.Errorf("took %v, want %v at least", took, least)
		}
		u.path.Restore()
		u.increment()
		u.expectReply(3)
	}
	for i, test := range []struct {
		name string
		use  func(u *user)
	}{
		{"Delay", func(u *user) { u.path.Delay(latency, 0); timed(u, 2*latency) }},
		{"DelayReplies", func(u *user) { u.path.DelayReplies(latency, 0); timed(u, latency) }},
		{"DelayReplies delays no command", func(u *user) {
			u.path.DelayReplies(time.Hour, time.Minute)
			u.increment()
			u.awaitValue("2")
			u.path.Restore()
			u.expectReply(2)
		}},
		{"Throttle", func(u *user) { u.path.Throttle(1); timed(u, 100*time.Millisecond) }},
		{"HalfOpen upstream", func(u *user) {
			u.path.HalfOpen(Upstream)
			u.increment()
			u.expectSilence()
			u.awaitValue("1")
			u.path.Restore()
			_ = u.expectEnd()
		}},
		{"HalfOpen downstream", func(u *user) {
			u.path.HalfOpen(Downstream)
			u.increment()
			u.awaitValue("2")
			u.path.Restore()
			_ = u.expectEnd()
		}},
		{"Reset", func(u *user) {
			u.path.Reset()
			u.increment()
			if err := u.expectEnd(); !errors.Is(err, syscall.ECONNRESET) {
				u.Errorf("got %v, want a reset", err)
			}
			u.awaitValue("2")
		}},
		{"Down", func(u *user) {
			u.path.Down()
			_ = u.expectEnd()
			if conn, err := new(net.Dialer).DialContext(u.Context(), "tcp", u.addr); !errors.Is(err, syscall.ECONNREFUSED) {
				u.Errorf("got %v, %v; want a refusal", conn, err)
			}
			u.path.Up()
			u.dial()
			timed(u, 0)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			path := n.Path(i)
			u := &user{T: t, path: path, addr: path.To(server.Addr()).Routes[server.Addr()], admin: server.Client(t), key: strings.Repeat("n", 100+i)}
			u.dial()
			u.increment()
			u.expectReply(1)
			test.use(u)
		})
	}
}

func TestSliceMakesTinyPackets(t *testing.T) {
	t.Parallel()
	n := Start(t, redistest.Start(t).Addr())
	n.Path(1).Slice()
	var seen packets
	newPipe().run(strings.NewReader(strings.Repeat("x", 1000)), &seen, n.Path(1).links[0].settings[Upstream], func(error) {})
	if seen.bytes != 1000 || seen.longest > 16 {
		t.Errorf("%d bytes, in packets of up to %d", seen.bytes, seen.longest)
	}
}

// packets counts the writes.
type packets struct{ bytes, longest int }

func (p *packets) Write(data []byte) (int, error) {
	p.bytes += len(data)
	p.longest = max(p.longest, len(data))
	return len(data), nil
}
