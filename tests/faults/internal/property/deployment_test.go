package property

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"pgregory.net/rapid"

	"github.com/reqlock/reqlock/core"
)

// ttl is that of each lease.
const ttl = 10 * time.Second

// A deployment is where a game is played: two processes at one server.
type deployment struct {
	server    *miniredis.Miniredis
	processes [2]process
}

// A process is a Locker with a client and a network that it shares with nobody.
type process struct {
	locks   *core.Locker
	network *network
}

// checkGames draws games, each in a bubble with a clock of its own, at a table of its
// own.
func checkGames(t *testing.T, test func(*rapid.T, *deployment), opts ...core.Option) {
	t.Helper()
	rapid.Check(t, func(rt *rapid.T) {
		var ended any // with what panic: a bubble may not end with one
		synctest.Test(t, func(*testing.T) {
			table := newDeployment(opts)
			defer table.close()
			defer func() { ended = recover() }()
			test(rt, table)
		})
		// rapid takes two failures for the same if they come from the same line,
		// and games that it cut too short must not look like those that failed.
		switch {
		case ended == nil:
		case rt.Failed():
			panic(ended)
		default:
			panic(ended)
		}
	})
}

// newDeployment returns a table for a new game.
func newDeployment(opts []core.Option) *deployment {
	t := &deployment{server: miniredis.NewMiniRedis()}
	t.server.ClockTTL(true)
	for i := range t.processes {
		t.processes[i] = t.newProcess(opts)
	}
	return t
}

// newProcess returns a process. Nothing in its client ticks, so that a bubble comes to
// rest.
func (t *deployment) newProcess(opts []core.Option) process {
	network := &network{server: t.server, wires: map[*asyncConn]struct{}{}}
	client := redis.NewClient(&redis.Options{
		Dialer:                   network.dial,
		MaxRetries:               -1,
		ReadTimeout:              -2,
		WriteTimeout:             -2,
		ConnMaxIdleTime:          -1,
		PoolSize:                 4096,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	locks := core.Must(core.New(client, append([]core.Option{core.WithTTL(ttl), core.WithFencing(true)}, opts...)...))
	return process{locks, network}
}

// close ends all processes and the server.
func (t *deployment) close() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, p := range t.processes {
		p.network.restore()
		_ = p.locks.Close(ctx)                  // leases that are held are lost
		_ = p.locks.Close(context.Background()) // left-behind commands end
		p.network.cut()
	}
	t.server.Close()
}

// anyProcess draws a process.
func (t *deployment) anyProcess(rt *rapid.T) *process {
	return &t.processes[rapid.IntRange(0, len(t.processes)-1).Draw(rt, "process")]
}
