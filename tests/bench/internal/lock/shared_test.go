package lock

import (
	"context"
	"testing"
	"time"

	"github.com/reqlock/reqlock/tests/bench/internal/redisserver"
	"github.com/reqlock/reqlock/tests/bench/internal/wire"
)

// openOn opens a kind of lock on a server, for keys with that many permits.
func openOn(t *testing.T, name Name, permits int) Locker {
	t.Helper()
	server := redisserver.Start(t)
	locks, err := Open(name, Config{Addrs: server.Addrs(), Commands: new(wire.Counter), Permits: permits})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := locks.Close(); err != nil {
			t.Error(err)
		}
	})
	return locks
}

// granted takes a lock that is free.
func granted(t *testing.T, take func(context.Context, string) (Held, error)) Held {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	held, err := take(ctx, "k")
	if err != nil {
		t.Fatalf("a lock that is free is not granted: %v", err)
	}
	return held
}

// refuses checks that a lock is not granted for a while.
func refuses(t *testing.T, take func(context.Context, string) (Held, error)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	held, err := take(ctx, "k")
	if err == nil {
		t.Error("a lock is granted beside others that exclude it")
		release(t, held)
	} else if ctx.Err() == nil {
		t.Error(err)
	}
}

func release(t *testing.T, held Held) {
	t.Helper()
	if err := held.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestPermitsAreLimited(t *testing.T) {
	const permits = 3
	for _, name := range []Name{ReqlockPermits, RawPermits, Asynq, Channel} {
		t.Run(string(name), func(t *testing.T) {
			locks := openOn(t, name, permits)
			var all []Held
			for range permits {
				all = append(all, granted(t, locks.Lock))
			}
			refuses(t, locks.Lock)
			release(t, all[1])
			all[1] = granted(t, locks.Lock)
			for _, held := range all {
				release(t, held)
			}
		})
	}
}

func TestReadersExcludeWriters(t *testing.T) {
	for _, name := range []Name{ReqlockShared, RawShared} {
		t.Run(string(name), func(t *testing.T) {
			locks := openOn(t, name, 0).(Sharer)
			one, other := granted(t, locks.Share), granted(t, locks.Share)
			refuses(t, locks.Lock)
			release(t, one)
			release(t, other)
			writer := granted(t, locks.Lock)
			refuses(t, locks.Share)
			release(t, writer)
		})
	}
}
