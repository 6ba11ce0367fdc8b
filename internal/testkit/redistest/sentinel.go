package redistest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// MasterName is the name of the master for the sentinels of [StartSentinel].
const MasterName = "reqlock"

const (
	// sentinelQuorum is how many sentinels must agree that the master is down.
	sentinelQuorum = 2

	// downAfter is the timeout of a server while the test waits for a failover. Each
	// sentinel except the first adds another downStep: if all detect the failure at once,
	// each votes for itself, and the next election is seconds later. A new master is
	// available about three seconds after the test began to wait.
	downAfter = 500 * time.Millisecond
	downStep  = 250 * time.Millisecond

	// failoverTimeout is half of the pause after a failed failover.
	failoverTimeout = 2 * time.Second
)

// Sentinels is a master with two replicas and the three sentinels that monitor them,
// redis-server processes that belong to one test.
//
// Their timeouts are long, as those of a [Cluster]: a killed or paused master is replaced as
// soon as the test waits for that, and a healthy master never.
//
// Its methods must be called on the goroutine of the test, as
// testing.TB.FailNow demands. They poll until all running processes, which are neither
// killed nor paused, agree. They fail the test with the logs after 30 seconds.
type Sentinels struct {
	tb      testing.TB
	servers group
	watch   group   // the sentinels
	split   *Server // the old master that Split keeps
}

// StartSentinel runs a master, two replicas and three sentinels with a quorum
// of two on free loopback ports, without persistence, and returns when the
// sentinels could replace the master: after about half a second. The args are
// added to the command line of the master and the replicas. It takes Redis 7.0 or newer.
func StartSentinel(tb testing.TB, args ...string) *Sentinels {
	tb.Helper()
	program := Program(tb)
	s := &Sentinels{tb: tb}
	for range 3 {
		s.servers = append(s.servers, newServer(tb, program, replicated(args)))
	}
	s.servers.start(tb)
	master := s.servers[0]
	for _, replica := range s.servers[1:] {
		replica.mustRun("REPLICAOF", "127.0.0.1", master.port)
	}
	// Sentinels that find a broken link check again only after a second.
	s.servers.await(tb, "the replicas", func(ctx context.Context) error {
		return errors.Join(follows(ctx, s.servers[1], master), follows(ctx, s.servers[2], master))
	})
	for range 3 {
		watcher := newServer(tb, program, nil)
		watcher.role = sentinel
		if err := os.WriteFile(watcher.configPath(), watching(master), 0o600); err != nil {
			tb.Fatalf("configure a sentinel: %v", err)
		}
		s.watch = append(s.watch, watcher)
	}
	s.watch.start(tb)
	s.Await()
	return s
}

func watching(master *Server) []byte {
	config := fmt.Appendf(nil, "sentinel monitor %s 127.0.0.1 %d %d\n", MasterName, master.port, sentinelQuorum)
	config = fmt.Appendf(config, "sentinel down-after-milliseconds %s %d\n", MasterName, idleTimeout.Milliseconds())
	config = fmt.Appendf(config, "sentinel failover-timeout %s %d\n", MasterName, failoverTimeout.Milliseconds())
	if password := master.password(); password != "" {
		config = fmt.Appendf(config, "sentinel auth-pass %s %s\n", MasterName, password)
	}
	if user := master.administrator(); user != "" {
		config = fmt.Appendf(config, "sentinel auth-user %s %s\nsentinel auth-pass %s %s\n", MasterName, user, MasterName, noPassword)
	}
	return config
}

// publishPeriod is how often a sentinel announces itself to the others.
const publishPeriod = 200 * time.Millisecond

// shortenPeriods makes a new sentinel do in a fraction of a second what it usually does every
// one, two or ten seconds.
func (s *Server) shortenPeriods() error {
	return s.admin().Do(context.Background(), "SENTINEL", "DEBUG",
		"info-period", 200,
		"ping-period", 200,
		"publish-period", publishPeriod.Milliseconds(),
		// A sentinel that was stopped does nothing for this time, half a minute by default.
		"tilt-period", 1000,
	).Err()
}

// Servers returns the master and the replicas, whether they run or not. The
// slice belongs to the caller.
func (s *Sentinels) Servers() []*Server {
	return slices.Clone(s.servers)
}

// Sentinels returns the sentinels, whether they run or not. The slice belongs
// to the caller.
func (s *Sentinels) Sentinels() []*Server {
	return slices.Clone(s.watch)
}

// Client returns a client of the master, whichever server that is, that the
// cleanup of tb closes. Its options are the defaults of go-redis, retries
// included, with the password of the servers if --requirepass sets one, apart
// from what configure changes.
func (s *Sentinels) Client(tb testing.TB, configure ...func(*redis.FailoverOptions)) *redis.Client {
	tb.Helper()
	options := &redis.FailoverOptions{MasterName: MasterName, Password: s.servers[0].password()}
	for _, watcher := range s.watch {
		options.SentinelAddrs = append(options.SentinelAddrs, watcher.Addr())
	}
	for _, change := range configure {
		change(options)
	}
	return open(tb, s.servers[0].administrator(), &options.Username, &options.Password, func() *redis.Client {
		o := *options
		return redis.NewFailoverClient(&o)
	})
}
