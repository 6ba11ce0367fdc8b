package wire

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
)

// A Counter counts the commands that are sent on its connections. The zero value is ready.
// It is safe for concurrent use.
type Counter struct {
	commands atomic.Int64
}

// Commands returns how many commands have been sent so far.
func (c *Counter) Commands() int64 { return c.commands.Load() }

// Dial connects to addr over TCP. It counts the commands on the connection, and is
// otherwise the dialer's connection. The error is the dialer's.
func (c *Counter) Dial(ctx context.Context, dialer *net.Dialer, addr string) (net.Conn, error) {
	plain, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	tcp, ok := plain.(*net.TCPConn)
	if !ok {
		_ = plain.Close()
		return nil, fmt.Errorf("dial %s: the connection is a %T", addr, plain)
	}
	return &conn{TCPConn: tcp, counter: c}, nil
}

// A conn counts what is written to it. Clients write from one goroutine at a time. It has
// the methods by which clients check whether the connection is open.
type conn struct {
	*net.TCPConn
	counter *Counter
	parser  parser
}

// Write counts the commands that end in the bytes, and then sends the bytes: the reader of
// a client may have all replies before Write returns.
func (c *conn) Write(sent []byte) (int, error) {
	if commands := c.parser.ended(sent); commands > 0 {
		c.counter.commands.Add(int64(commands))
	}
	return c.TCPConn.Write(sent)
}
