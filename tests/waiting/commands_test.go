package waiting

import (
	"context"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// In one second a holder, and 50 waiters of another process, send the renewals of the
// holder and one safety check. On a busy machine the second may be longer: one more
// command is allowed for each additional half second.
func TestWaitersCostNothingWhileTheyWait(t *testing.T) {
	t.Parallel()
	const waiters = 50
	for name, ttl := range map[string]time.Duration{"no renewal is due": 10 * time.Second, "renewals are due": 2 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			admin := server.Client(t)
			var sent, waiting, renewals atomic.Int64

			holder := server.Client(t)
			holder.AddHook(commandCounter{&sent})
			outer := lock(t, newLocker(t, holder, core.WithTTL(ttl), core.WithFencing(true), core.WithObserver(func(event core.Event) {
				if event.Kind == core.Renewed {
					renewals.Add(1)
				}
			})))

			others := server.Client(t)
			others.AddHook(commandCounter{&sent})
			locks := newLocker(t, others, core.WithTTL(ttl), core.WithFencing(true), countWaiters(&waiting))
			var group sync.WaitGroup
			for range waiters {
				group.Go(func() {
					if err := locks.Do(t.Context(), theKey, func(context.Context) error { return nil }); err != nil {
						t.Error(err)
					}
				})
			}
			suite.Eventually(t, "all wait", func() bool { return waiting.Load() == waiters && queueLength(t, admin) == 1 })
			if ttl < 10*time.Second {
				// No renewal is in flight at either end of the second.
				suite.Eventually(t, "a renewal is done", func() bool { return renewals.Load() > 0 })
			}

			begun := time.Now()
			before, sentBefore, renewed := commandStats(t, admin), sent.Load(), renewals.Load()
			<-time.After(time.Second)
			clients, after := sent.Load()-sentBefore, commandStats(t, admin)
			renewed = renewals.Load() - renewed
			more := int64((time.Since(begun) - time.Second) / (500 * time.Millisecond)) // if the second was longer

			// Commands of scripts count, too, but no script runs SET here.
			ran := sum(after, lockCommands...) - sum(before, lockCommands...)
			t.Logf("in a second %d waiters and a holder sent %d commands, of which %d were renewals; the server ran %d; and %d PING",
				waiters, clients, renewed, ran, after["ping"]-before["ping"])
			if clients > renewed+1+more || ran > renewed+1+more {
				t.Errorf("%d commands were sent and %d run, for %d renewals and one safety check", clients, ran, renewed)
			}
			if ttl < 10*time.Second && renewed == 0 {
				t.Error("no renewal was due")
			}
			release(t, outer)
			group.Wait()
		})
	}
}

// lockCommands are the commands that may request a lock.
var lockCommands = []string{"evalsha", "eval", "evalsha_ro", "fcall", "script|load", "set", "setnx", "subscribe", "exists"}

// commandStats returns how often the server ran each command, by its name in lower case.
// Commands that scripts run count, too.
func commandStats(t *testing.T, rdb redis.UniversalClient) map[string]int64 {
	t.Helper()
	info, err := rdb.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	stats := map[string]int64{}
	for line := range strings.Lines(info) {
		name, figures, found := strings.Cut(line, ":calls=")
		if !found {
			continue
		}
		calls, _, _ := strings.Cut(figures, ",")
		n, err := strconv.ParseInt(calls, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		stats[strings.TrimPrefix(name, "cmdstat_")] = n
	}
	return stats
}

func sum(stats map[string]int64, names ...string) (n int64) {
	for _, name := range names {
		n += stats[name]
	}
	return n
}

// A commandCounter counts the commands that a client sends.
type commandCounter struct{ n *atomic.Int64 }

func (c commandCounter) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (c commandCounter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.n.Add(1)
		return next(ctx, cmd)
	}
}

func (c commandCounter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.n.Add(int64(len(cmds)))
		return next(ctx, cmds)
	}
}
