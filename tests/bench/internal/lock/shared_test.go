package lock

import (
	"context"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/tests/bench/internal/redisserver"
	"github.com/reqlock/reqlock/tests/bench/internal/wire"
)

// openOn opens a kind of lock on a server, for keys with that many permits.
func openOn(t *testing.T, name Name, permits int) Locker {
	t.Helper()
	redistest.Program(t)
	server, err := redisserver.Start(t.Context())
	stopLater(t, server, err)
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

// takes reports whether a lock is granted soon.
func takes(t *testing.T, take func(context.Context, string) (Held, error)) (Held, bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	held, err := take(ctx, "k")
	if err != nil && ctx.Err() == nil {
		t.Fatal(err)
	}
	return held, err == nil
}

func release(t *testing.T, held Held) {
	t.Helper()
	if err := held.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestPermitsAreLimited(t *testing.T) {
	const permits = 3
	for _, name := range []Name{ReqlockPermits, RawPermits, Channel} {
		t.Run(string(name), func(t *testing.T) {
			locks := openOn(t, name, permits)
			var all []Held
			for i := range permits {
				held, ok := takes(t, locks.Lock)
				if !ok {
					t.Fatalf("permit %d is not granted", i)
				}
				all = append(all, held)
			}
			if _, ok := takes(t, locks.Lock); ok {
				t.Error("one permit too many is granted")
			}
			release(t, all[1])
			if held, ok := takes(t, locks.Lock); ok {
				all[1] = held
			} else {
				t.Error("a permit that was released is not granted")
			}
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
			one, okOne := takes(t, locks.Share)
			other, okOther := takes(t, locks.Share)
			if !okOne || !okOther {
				t.Fatal("two readers are not granted the lock")
			}
			if _, ok := takes(t, locks.Lock); ok {
				t.Error("a writer is granted the lock beside readers")
			}
			release(t, one)
			release(t, other)
			writer, ok := takes(t, locks.Lock)
			if !ok {
				t.Fatal("a writer is not granted a free lock")
			}
			if _, ok := takes(t, locks.Share); ok {
				t.Error("a reader is granted the lock beside a writer")
			}
			release(t, writer)
		})
	}
}
