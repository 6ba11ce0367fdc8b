package quorumstore

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/topology"
)

// The reasons to refuse a client.
var (
	errNil            = errors.New("is nil")
	errSeveralServers = errors.New("leads to several servers, or does not show its options: " +
		"make each client of a quorum with redis.NewClient, for one server")
	errFailover = errors.New("leads to a master that Sentinel may replace by a replica, which may lack votes of the master: " +
		"make each client of a quorum with redis.NewClient, for one server")
)

// sentinelAddr is the address that go-redis gives to a client of Sentinel.
const sentinelAddr = "FailoverClient"

// connect returns a client with the options of the given client. Each new connection of the
// returned client is checked by admit. The connections and hooks of the given client are not
// used.
func (m *membership) connect(i int, given redis.UniversalClient) (*redis.Client, error) {
	if given == nil {
		return nil, errNil
	}
	one, ok := given.(topology.Server)
	if !ok {
		return nil, errSeveralServers
	}
	o := *one.Options()
	if o.Addr == sentinelAddr {
		return nil, errFailover
	}
	restoreNone(&o)
	before := o.OnConnect
	o.OnConnect = func(ctx context.Context, conn *redis.Conn) error {
		if before != nil {
			if err := before(ctx, conn); err != nil {
				return err
			}
		}
		return m.admit(ctx, i, conn)
	}
	o.Dialer = m.track(i, o.Dialer)
	return redis.NewClient(&o), nil
}

// restoreNone restores the options that mean "none". go-redis normalizes its options, and
// would read a normalized "none" as "the default". restoreNone also disables idle
// connections and the client-side cache.
func restoreNone(o *redis.Options) {
	for _, timeout := range []*time.Duration{&o.ReadTimeout, &o.WriteTimeout} {
		if *timeout <= 0 {
			*timeout--
		}
	}
	for _, backoff := range []*time.Duration{&o.MinRetryBackoff, &o.MaxRetryBackoff} {
		if *backoff == 0 {
			*backoff = -1
		}
	}
	if o.MaxRetries == 0 {
		o.MaxRetries = -1
	}
	o.MinIdleConns = 0
	o.ClientSideCache, o.ClientSideCacheConfig = nil, nil
	o.PushNotificationProcessor = nil // a processor serves one client only
}

// A dialer makes a connection.
type dialer func(ctx context.Context, network, addr string) (net.Conn, error)

// track returns a dialer that uses dial, and records the open connections of a client.
func (m *membership) track(i int, dial dialer) dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		c := &trackedConn{Conn: conn, membership: m, client: i}
		m.mu.Lock()
		m.members[i].conns[c] = struct{}{}
		m.mu.Unlock()
		if raw, ok := conn.(syscall.Conn); ok {
			return &rawTrackedConn{c, raw}, nil
		}
		return c, nil
	}
}

// A trackedConn is recorded as open in its membership until it is closed.
type trackedConn struct {
	net.Conn
	membership *membership
	client     int
	isReplaced atomic.Bool // closed because the client leads to another server now
}

// Read reads from the connection.
func (c *trackedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	return n, c.reason(err)
}

// Write writes to the connection.
func (c *trackedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	return n, c.reason(err)
}

// reason returns why the membership has closed the connection, if it has, instead of err.
func (c *trackedConn) reason(err error) error {
	if err != nil && c.isReplaced.Load() {
		return command.Answered(errReplaced)
	}
	return err
}

// NetConn returns the underlying connection. go-redis uses it.
func (c *trackedConn) NetConn() net.Conn { return c.Conn }

// Close closes the connection.
func (c *trackedConn) Close() error {
	m := c.membership
	m.mu.Lock()
	delete(m.members[c.client].conns, c)
	m.mu.Unlock()
	return c.Conn.Close()
}

// A rawTrackedConn implements syscall.Conn. Before go-redis reuses a connection, it checks
// with syscall.Conn that the server has not closed the connection.
type rawTrackedConn struct {
	*trackedConn
	syscall.Conn
}
