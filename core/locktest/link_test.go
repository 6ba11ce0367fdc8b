package locktest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
)

// startLink returns a link to a new Redis.
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

// open opens so many connections at once and leaves them in the client's pool. The server
// replies only after the client has dialed all of them.
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

func TestCutLinkRefusesConnections(t *testing.T) {
	t.Parallel()
	l := startLink(t)
	l.open(t, 1)
	l.cut()
	if err := l.ping(t); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("error of an old connection: %v", err)
	}
	if err := l.ping(t); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("error of a new connection: %v", err)
	}
}

// Idle connections that were cut must not fail a command after mend.
func TestMendedLinkHasNoDeadConnection(t *testing.T) {
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
	if len(l.conns) != 1 {
		t.Errorf("the link has %d connections, not 1", len(l.conns))
	}
	if err := l.client.Close(); err != nil || len(l.conns) != 0 {
		t.Errorf("closed (%v), the link has %d connections", err, len(l.conns))
	}
}

func TestLinkIsSafeForConcurrentUse(t *testing.T) {
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

// A batch may exceed the buffer of a connection: here it has scripts, which a new server does not
// have. The server replies to the first command before it reads the last one.
func TestLargeBatchDoesNotDeadlock(t *testing.T) {
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

// A pause of the machine does not look like a fault of Redis.
func TestPauseIsNoFault(t *testing.T) {
	t.Parallel()
	locks := New(t)
	locks.redis.Lock()
	time.AfterFunc(700*time.Millisecond, locks.redis.Unlock)
	if _, err := locks.TryLock(t.Context(), "a"); err != nil {
		t.Error(err)
	}
}

func TestEndOfTestClosesEverything(t *testing.T) {
	t.Parallel()
	var locks *Locks
	var lease *core.Lease
	t.Run("a test that releases nothing", func(t *testing.T) {
		locks = New(t)
		locks.Hold("other")
		var err error
		if lease, err = locks.TryLock(context.Background(), "a"); err != nil {
			t.Fatal(err)
		}
	})
	if cause := context.Cause(lease.Context()); !errors.Is(cause, core.ErrClosed) {
		t.Errorf("the cause is %v", cause)
	}
	for name, p := range map[string]*process{"tested": locks.tested, "other": locks.other} {
		if _, err := p.locker.TryLock(t.Context(), "b"); !errors.Is(err, core.ErrClosed) {
			t.Errorf("the %s Locker returns %v", name, err)
		}
		if err := p.link.client.Ping(t.Context()).Err(); !errors.Is(err, redis.ErrClosed) {
			t.Errorf("the %s client returns %v", name, err)
		}
	}
	if locks.redis.Server() != nil {
		t.Error("the embedded Redis still runs")
	}
}
