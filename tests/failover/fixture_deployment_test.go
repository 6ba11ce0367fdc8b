package failover

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// prefix is the prefix of keys in Redis.
const prefix = "reqlock:"

// A deployment is Sentinel or Cluster. Call its methods on the goroutine of the test.
type deployment struct {
	sentinels *redistest.Sentinels // nil on Cluster
	cluster   *redistest.Cluster   // nil on Sentinel
}

// deployments start the deployments.
var deployments = map[string]func(t *testing.T) *deployment{
	"sentinel": func(t *testing.T) *deployment { return &deployment{sentinels: redistest.StartSentinel(t)} },
	"cluster": func(t *testing.T) *deployment {
		return &deployment{cluster: redistest.StartCluster(t, "--cluster-require-full-coverage", "no")}
	},
}

func (d *deployment) servers() []*redistest.Server {
	if d.cluster != nil {
		return d.cluster.Nodes()
	}
	return d.sentinels.Servers()
}

func (d *deployment) masters() []*redistest.Server {
	if d.cluster != nil {
		return d.cluster.Masters()
	}
	return []*redistest.Server{d.sentinels.Master()}
}

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

// await returns when all running servers are healthy, and the replicas have all data.
func (d *deployment) await() {
	if d.cluster != nil {
		d.cluster.Await()
		return
	}
	d.sentinels.Await()
}

func (d *deployment) awaitFailover(master *redistest.Server) {
	if d.cluster != nil {
		d.cluster.AwaitFailover(master)
		return
	}
	d.sentinels.AwaitFailover(master)
}

// midOutage is a time after the end of a master at which mostly no replica is promoted
// yet, and a replica will be within a second.
func (d *deployment) midOutage() time.Duration {
	if d.cluster != nil {
		return 1800 * time.Millisecond
	}
	return 900 * time.Millisecond
}

func (d *deployment) switchFrom(master *redistest.Server) {
	if d.cluster != nil {
		d.cluster.Switch(master)
		return
	}
	d.sentinels.Switch()
}

// client returns the client of a process. With an even number, callers may send their own
// commands. The client dials routes[addr] instead of addr, if routes has it.
func (d *deployment) client(t *testing.T, number int, routes map[string]string) redis.UniversalClient {
	t.Helper()
	var dialer func(ctx context.Context, network, addr string) (net.Conn, error)
	if routes != nil {
		dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if route, isRouted := routes[addr]; isRouted {
				addr = route
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

func (d *deployment) others(master *redistest.Server) []*redistest.Server {
	return slices.DeleteFunc(d.masters(), func(s *redistest.Server) bool { return s == master })
}

// checkLeftovers fails the test if locks or queues remain, or a key has no TTL. All
// processes of the scenarios are closed. If old data restored a queue, none of its waiters
// removes it: it disappears with the next release of the lock.
func (d *deployment) checkLeftovers(t *testing.T) {
	t.Helper()
	suite.Eventually(t, "locks are gone", func() bool { return len(d.left(t, "")) == 0 })
	p := newProcess(t, d.client(t, 0, nil))
	for _, queue := range d.left(t, ":q") {
		key := strings.TrimPrefix(strings.Trim(strings.TrimSuffix(queue, ":q"), "{}"), prefix)
		if err := p.locks.Do(t.Context(), key, func(context.Context) error { return nil }); err != nil {
			t.Errorf("%s: %v", queue, err)
		}
	}
	suite.Eventually(t, "queues are gone", func() bool { return len(d.left(t, ":q"))+len(d.left(t, "")) == 0 })
}

// left returns the keys of a kind that remain: locks ("") or keys with a suffix.
func (d *deployment) left(t *testing.T, kind string) (found []string) {
	t.Helper()
	for _, master := range d.masters() {
		admin := master.Client(t)
		keys, err := admin.Keys(t.Context(), "*").Result()
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range keys {
			if admin.PTTL(t.Context(), key).Val() == -1 {
				t.Errorf("%s has no TTL", key)
			}
			if kind == "" && !strings.HasPrefix(key, "{") || kind != "" && strings.HasSuffix(key, kind) {
				found = append(found, key)
			}
		}
		_ = admin.Close()
	}
	return found
}

func TestMain(m *testing.M) { suite.Main(m) }

// patience bounds the wait for what must happen. It is far longer than that takes on a
// busy machine.
const patience = 30 * time.Second

// parallelInFastTier runs a test of several deployments beside the others. The full tier has
// so many deployments that these tests must follow each other: on a busy machine too many
// servers at once would seem to fail.
func parallelInFastTier(t *testing.T) {
	t.Helper()
	if !suite.IsFull() {
		t.Parallel()
	}
}
