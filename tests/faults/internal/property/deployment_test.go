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

// ttl is the TTL of each lease.
const ttl = 10 * time.Second

// A deployment is two processes on one server.
type deployment struct {
	server    *miniredis.Miniredis
	processes [2]process
}

// A process is a Locker with its own client and network.
type process struct {
	locks   *core.Locker
	network *network
}

// checkSequences draws sequences of steps. Each runs on its own deployment, in a bubble with
// its own clock.
func checkSequences(t *testing.T, test func(*rapid.T, *deployment), opts ...core.Option) {
	t.Helper()
	rapid.Check(t, func(rt *rapid.T) {
		var ended any // the value of a panic, which must not leave the bubble
		synctest.Test(t, func(*testing.T) {
			table := newDeployment(opts)
			defer table.close()
			defer func() { ended = recover() }()
			test(rt, table)
		})
		// rapid compares failures by the line of their panic. A sequence that was shortened
		// too much must not look like the failed one.
		switch {
		case ended == nil:
		case rt.Failed():
			panic(ended)
		default:
			panic(ended)
		}
	})
}

// newDeployment starts a deployment.
func newDeployment(opts []core.Option) *deployment {
	t := &deployment{server: miniredis.NewMiniRedis()}
	t.server.ClockTTL(true)
	for i := range t.processes {
		t.processes[i] = t.newProcess(opts)
	}
	return t
}

// newProcess returns a process. Its client has no tickers, so that all goroutines of a
// bubble can block.
func (t *deployment) newProcess(opts []core.Option) process {
	network := &network{server: t.server, conns: map[*asyncConn]struct{}{}}
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
		_ = p.locks.Close(ctx)                  // held leases are lost
		_ = p.locks.Close(context.Background()) // commands in the background end
		p.network.cut()
	}
	t.server.Close()
}

// anyProcess draws a process.
func (t *deployment) anyProcess(rt *rapid.T) *process {
	return &t.processes[rapid.IntRange(0, len(t.processes)-1).Draw(rt, "process")]
}
