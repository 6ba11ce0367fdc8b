package waiting

import (
	"context"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
)

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
