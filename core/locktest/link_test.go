package locktest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"testing"
)

// startLink returns a link to a Redis of its own.
func startLink(t *testing.T) *link {
	t.Helper()
	server := newRedis()
	l := newLink(server)
	t.Cleanup(func() {
		l.close()
		server.Close()
	})
	return l
}

// ping sends one command.
func (l *link) ping(t *testing.T) error {
	t.Helper()
	return l.client.Ping(t.Context()).Err()
}

// open makes so many connections at once, which the client then keeps: the
// server gives none out before all are asked for.
func (l *link) open(t *testing.T, conns uint32) {
	t.Helper()
	before := l.client.PoolStats().Misses
	var done sync.WaitGroup
	l.server.Lock()
	for range conns {
		done.Go(func() {
			if err := l.ping(t); err != nil {
				t.Error(err)
			}
		})
	}
	for l.client.PoolStats().Misses-before < conns {
		runtime.Gosched()
	}
	l.server.Unlock()
	done.Wait()
	if idle := l.client.PoolStats().IdleConns; idle != conns {
		t.Fatalf("the client keeps %d connections, not %d", idle, conns)
	}
}

func TestACutLinkRefuses(t *testing.T) {
	t.Parallel()
	l := startLink(t)
	l.open(t, 1)
	l.cut()
	if err := l.ping(t); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("an old connection says %v", err)
	}
	if err := l.ping(t); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a new connection says %v", err)
	}
}

// Connections that were cut while nobody used them must not fail a command
// that comes after mend.
func TestAMendedLinkHasNoDeadConnection(t *testing.T) {
	t.Parallel()
	l := startLink(t)
	l.open(t, 64)
	l.cut()
	l.mend()
	for range 3 {
		if err := l.ping(t); err != nil {
			t.Fatal(err)
		}
	}
	if len(l.wires) != 1 {
		t.Errorf("the link knows %d connections, not 1", len(l.wires))
	}
	if err := l.client.Close(); err != nil || len(l.wires) != 0 {
		t.Errorf("closed (%v), the link knows %d connections", err, len(l.wires))
	}
}

func TestALinkIsSwitchedByAnybodyAtAnyTime(t *testing.T) {
	t.Parallel()
	l := startLink(t)
	var done sync.WaitGroup
	for range 4 {
		done.Go(func() {
			for range 20 {
				l.cut()
				_ = l.ping(t)
				l.mend()
				_ = l.ping(t)
			}
		})
	}
	done.Wait()
	l.mend()
	if err := l.ping(t); err != nil {
		t.Error(err)
	}
}

// Commands that leave together may be more than the wire holds: scripts are, which
// a new server does not know. The server answers the first before it reads the last.
func TestManyScriptsLeaveTogether(t *testing.T) {
	t.Parallel()
	var keys []string
	for i := range 16 {
		keys = append(keys, fmt.Sprint("key", i))
	}
	locks := New(t)
	err := locks.DoAll(t.Context(), keys, func(context.Context) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		locks.Hold(key)()
	}
}
