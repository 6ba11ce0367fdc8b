package lock

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/reqlock/reqlock/bench/internal/redisserver"
	"github.com/reqlock/reqlock/bench/internal/wire"
	"github.com/reqlock/reqlock/internal/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server starts a redis-server, or skips the test where there is none.
func server(t *testing.T) *redisserver.Server {
	t.Helper()
	redistest.Program(t)
	s, err := redisserver.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestKindsExclude takes each lock on many goroutines, which count without any
// other protection.
func TestKindsExclude(t *testing.T) {
	s := server(t)
	for _, kind := range Kinds() {
		t.Run(string(kind.Name), func(t *testing.T) {
			locks, err := kind.Open(Config{s.Addr, new(wire.Counter)})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = locks.Close() }()
			var (
				crew  sync.WaitGroup
				count int
			)
			for range 8 {
				crew.Go(func() {
					for range 5 {
						held, err := locks.Lock(t.Context(), "k")
						if err != nil {
							t.Error(err)
							return
						}
						count++
						if err := held.Release(t.Context()); err != nil {
							t.Error(err)
						}
					}
				})
			}
			crew.Wait()
			if count != 40 {
				t.Errorf("counted to %d, want 40", count)
			}
		})
	}
}

// TestKindsWaitUntilTheirContextEnds holds a lock and waits for it again.
func TestKindsWaitUntilTheirContextEnds(t *testing.T) {
	s := server(t)
	for _, kind := range Kinds() {
		t.Run(string(kind.Name), func(t *testing.T) {
			locks, err := kind.Open(Config{s.Addr, new(wire.Counter)})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = locks.Close() }()
			held, err := locks.Lock(t.Context(), "k")
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if _, err := locks.Lock(ctx, "k"); err == nil || ctx.Err() == nil {
				t.Errorf("the second Lock returned %v, its context is %v", err, ctx.Err())
			}
			if err := held.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestCommandsAreCounted compares what the clients have sent with what the
// server says. The commands of scripts are the server's only.
func TestCommandsAreCounted(t *testing.T) {
	const turns = 20
	s := server(t)
	for _, kind := range Kinds() {
		if kind.Name == Channel {
			continue
		}
		t.Run(string(kind.Name), func(t *testing.T) {
			commands := new(wire.Counter)
			locks, err := kind.Open(Config{s.Addr, commands})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = locks.Close() }()
			turn := func() {
				held, err := locks.Lock(t.Context(), "k")
				if err != nil {
					t.Fatal(err)
				}
				if err := held.Release(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			turn() // connections and scripts
			before, beforeErr := s.Used(t.Context())
			sent := commands.Commands()
			for range turns {
				turn()
			}
			after, afterErr := s.Used(t.Context())
			if err := errors.Join(beforeErr, afterErr); err != nil {
				t.Fatal(err)
			}
			calls := after.Since(before).Calls
			want := calls["evalsha"]
			if want == turns { // the other command of a turn is a plain SET
				want += turns
			}
			if got := commands.Commands() - sent; got != want || got != 2*turns {
				t.Errorf("%d commands were sent in %d turns; the server has %v", got, turns, calls)
			}
		})
	}
}

func TestUnknownNameIsAnError(t *testing.T) {
	if _, err := Open("nobody's", Config{}); err == nil {
		t.Error("a lock that nobody made was opened")
	}
}
