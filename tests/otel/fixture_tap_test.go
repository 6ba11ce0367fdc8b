package oteltest

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
)

// A tap keeps all bytes of the connections of a client, in both directions.
type tap struct {
	mu    sync.Mutex
	conns []*tapped
}

// dial is the Dialer of a client.
func (t *tap) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	one := &tapped{Conn: conn, tap: t}
	t.conns = append(t.conns, one)
	return one, nil
}

// text returns all bytes: those of a connection and a direction together.
func (t *tap) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all strings.Builder
	for _, conn := range t.conns {
		_, _ = fmt.Fprintf(&all, "%s\n%s\n", conn.sent, conn.received)
	}
	return all.String()
}

type tapped struct {
	net.Conn
	tap            *tap
	sent, received []byte // under the lock of the tap
}

func (c *tapped) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.tap.mu.Lock()
	defer c.tap.mu.Unlock()
	c.received = append(c.received, p[:n]...)
	return n, err
}

func (c *tapped) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.tap.mu.Lock()
	defer c.tap.mu.Unlock()
	c.sent = append(c.sent, p[:n]...)
	return n, err
}

// dump keeps the names and the values of all keys of a server: as they are read, and as DUMP returns them. The
// server must not compress values.
func (s *search) dump(t *testing.T, rdb *redis.Client) {
	t.Helper()
	names, err := rdb.Keys(t.Context(), "*").Result()
	if err != nil || len(names) == 0 {
		t.Fatalf("the keys are %q: %v", names, err)
	}
	for _, name := range names {
		s.add(inNames, name)
		dumped, err := rdb.Dump(t.Context(), name).Result()
		kind, err2 := rdb.Type(t.Context(), name).Result()
		read := map[string][]any{
			"string": {"GET", name}, "hash": {"HGETALL", name},
			"list": {"LRANGE", name, 0, -1}, "zset": {"ZRANGE", name, 0, -1, "WITHSCORES"},
		}[kind]
		if err != nil || err2 != nil || read == nil {
			t.Errorf("%q is of type %q: %v, %v", name, kind, err, err2)
			continue
		}
		value, err := rdb.Do(t.Context(), read...).Result()
		if err != nil {
			t.Error(err)
		}
		s.add(inValues, fmt.Sprint(dumped, "\n", value))
	}
}
