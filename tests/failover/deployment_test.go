package failover

import (
	"context"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// prefix is what stands before the keys in Redis.
const prefix = "reqlock:"

// A deployment is one of the two in which a master can be replaced. Its methods
// must be called on the goroutine of the test, but for client's dialer.
type deployment struct {
	sentinels *redistest.Sentinels // or
	cluster   *redistest.Cluster
}

// deployments start them.
var deployments = map[string]func(t *testing.T) *deployment{
	"sentinel": func(t *testing.T) *deployment { return &deployment{sentinels: redistest.StartSentinel(t)} },
	"cluster": func(t *testing.T) *deployment {
		return &deployment{cluster: redistest.StartCluster(t, "--cluster-require-full-coverage", "no")}
	},
}

// servers returns all that can be masters.
func (d *deployment) servers() []*redistest.Server {
	if d.cluster != nil {
		return d.cluster.Nodes()
	}
	return d.sentinels.Servers()
}

// masters returns those that are.
func (d *deployment) masters() []*redistest.Server {
	if d.cluster != nil {
		return d.cluster.Masters()
	}
	return []*redistest.Server{d.sentinels.Master()}
}

// keysAt returns so many keys whose locks are at the master.
func (d *deployment) keysAt(master *redistest.Server, name string, n int) (keys []string) {
	for i := 0; len(keys) < n; i++ {
		key := fmt.Sprintf("%s-%d", name, i)
		if d.isAt(master, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

func (d *deployment) isAt(master *redistest.Server, key string) bool {
	return d.cluster == nil || d.cluster.MasterOf(prefix+key) == master
}

// await returns when all that runs is healthy, with all data on the replicas.
func (d *deployment) await() {
	if d.cluster != nil {
		d.cluster.Await()
		return
	}
	d.sentinels.Await()
}

// awaitFailover returns when the master was replaced.
func (d *deployment) awaitFailover(master *redistest.Server) {
	if d.cluster != nil {
		d.cluster.AwaitFailover(master)
		return
	}
	d.sentinels.AwaitFailover(master)
}

// midst is how long after the end of a master nobody is promoted yet, mostly, and
// the new one is at work within a second.
func (d *deployment) midst() time.Duration {
	if d.cluster != nil {
		return 1800 * time.Millisecond
	}
	return 900 * time.Millisecond
}

// switchFrom replaces the master on purpose.
func (d *deployment) switchFrom(master *redistest.Server) {
	if d.cluster != nil {
		d.cluster.Switch(master)
		return
	}
	d.sentinels.Switch()
}

// client returns a client as a process would have one, of which every other one
// lets callers send by themselves. It dials via[addr] instead of addr, if there is
// one.
func (d *deployment) client(t *testing.T, number int, via map[string]string) redis.UniversalClient {
	t.Helper()
	var dialer func(ctx context.Context, network, addr string) (net.Conn, error)
	if via != nil {
		dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if other, found := via[addr]; found {
				addr = other
			}
			dialer := net.Dialer{Timeout: 5 * time.Second}
			return dialer.DialContext(ctx, network, addr)
		}
	}
	if d.cluster != nil {
		return d.cluster.Client(t, func(o *redis.ClusterOptions) {
			o.Dialer, o.ContextTimeoutEnabled = dialer, number%2 == 0
		})
	}
	return d.sentinels.Client(t, func(o *redis.FailoverOptions) {
		o.Dialer, o.ContextTimeoutEnabled = dialer, number%2 == 0
	})
}

// others returns the masters but one.
func (d *deployment) others(master *redistest.Server) []*redistest.Server {
	return slices.DeleteFunc(d.masters(), func(s *redistest.Server) bool { return s == master })
}
