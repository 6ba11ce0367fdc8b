// Package wire has go-redis clients whose commands are counted as they are sent. The statistics of
// a server include the commands of scripts.
package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// dialTimeout bounds a dial.
const dialTimeout = 5 * time.Second

// Deadlines makes a client respect the deadlines of contexts.
func Deadlines(o *redis.UniversalOptions) { o.ContextTimeoutEnabled = true }

// NewClient returns a go-redis client that counts its commands: a *redis.Client for one
// address, and a *redis.ClusterClient for the nodes of a cluster. It has default options,
// except for those that configure changes.
func NewClient(addrs []string, commands *Counter, configure ...func(*redis.UniversalOptions)) redis.UniversalClient {
	options := &redis.UniversalOptions{
		Addrs: addrs,
		Dialer: func(ctx context.Context, _, addr string) (net.Conn, error) {
			return commands.Dial(ctx, &net.Dialer{Timeout: dialTimeout}, addr)
		},
	}
	for _, change := range configure {
		change(options)
	}
	return redis.NewUniversalClient(options)
}

// NewClients returns one client like NewClient for each address of an independent server.
func NewClients(addrs []string, commands *Counter, configure ...func(*redis.UniversalOptions)) []redis.UniversalClient {
	clients := make([]redis.UniversalClient, len(addrs))
	for i, addr := range addrs {
		clients[i] = NewClient([]string{addr}, commands, configure...)
	}
	return clients
}

// Close closes clients.
func Close(clients []redis.UniversalClient) error {
	var errs []error
	for _, client := range clients {
		errs = append(errs, client.Close())
	}
	return errors.Join(errs...)
}

// A Counter counts the commands that are sent on its connections. The zero value is ready.
// It is safe for concurrent use.
type Counter struct {
	commands, writes atomic.Int64
}

// Commands returns how many commands have been sent so far.
func (c *Counter) Commands() int64 { return c.commands.Load() }

// Writes returns in how many writes they have been sent. Where one caller waits for each reply, these
// are its round trips.
func (c *Counter) Writes() int64 { return c.writes.Load() }

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
		c.counter.writes.Add(1)
	}
	return c.TCPConn.Write(sent)
}
