// Package redisserver has the servers of the suites: one, a Redis Cluster, a master with replicas,
// or the independent servers of a quorum. They have no persistence. It reads from them what a run
// has cost.
package redisserver

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// Servers are the processes of redis-server that a suite uses. They end with their testing.TB.
type Servers struct {
	// Addrs are the addresses that the contestants get.
	Addrs []string

	masters  []*redis.Client
	replicas []*redis.Client
}

// Start starts one server.
func Start(tb testing.TB) *Servers {
	tb.Helper()
	return mastersOf(tb, redistest.Start(tb))
}

// StartProgram starts the server at a path, such as Valkey.
func StartProgram(tb testing.TB, program string) *Servers {
	tb.Helper()
	return mastersOf(tb, redistest.StartProgram(tb, program))
}

// StartCluster starts a Redis Cluster of three masters without replicas, whose nodes may be silent
// as long as by default. It takes two to three seconds.
func StartCluster(tb testing.TB) *Servers {
	tb.Helper()
	s := mastersOf(tb, redistest.StartMasters(tb, 3)...)
	for _, master := range s.masters {
		if err := master.ConfigSet(tb.Context(), "cluster-node-timeout", "15000").Err(); err != nil {
			tb.Fatalf("set the timeout of a node: %v", err)
		}
	}
	return s
}

// StartReplicated starts a master and two replicas, which are in sync. The contestants get the
// master. It pings its replicas as often as by default, not as often as in tests.
func StartReplicated(tb testing.TB) *Servers {
	tb.Helper()
	all := redistest.StartReplicas(tb, 2, "--repl-ping-replica-period", "10")
	s := mastersOf(tb, all[0])
	for _, replica := range all[1:] {
		s.replicas = append(s.replicas, replica.Client(tb))
	}
	return s
}

// StartQuorum starts that many independent servers. It returns when they have run for longer than
// age.
func StartQuorum(tb testing.TB, count int, age time.Duration) *Servers {
	tb.Helper()
	servers := make([]*redistest.Server, count)
	for i := range servers {
		servers[i] = redistest.Start(tb)
	}
	select {
	case <-tb.Context().Done():
	case <-time.After(age + time.Second): // they count whole seconds
	}
	return mastersOf(tb, servers...)
}

func mastersOf(tb testing.TB, servers ...*redistest.Server) *Servers {
	tb.Helper()
	s := new(Servers)
	for _, server := range servers {
		s.Addrs = append(s.Addrs, server.Addr())
		s.masters = append(s.masters, server.Client(tb))
	}
	return s
}

// clearTime is how long replicas may take to delete all keys, too.
const clearTime = 2 * time.Second

// First returns the first of the independent servers, which it shares with s.
func (s *Servers) First(count int) *Servers {
	return &Servers{Addrs: s.Addrs[:count], masters: s.masters[:count]}
}

// Clear deletes all keys, and returns when the replicas have, too. WAIT waits for what its own
// connection has sent.
func (s *Servers) Clear(ctx context.Context) error {
	for _, master := range s.masters {
		conn := master.Conn()
		flushed, wait := conn.FlushAll(ctx), conn.Do(ctx, "WAIT", len(s.replicas), clearTime.Milliseconds())
		n, err := wait.Int()
		if err = errors.Join(flushed.Err(), err, conn.Close()); err != nil {
			return err
		}
		if n < len(s.replicas) {
			return fmt.Errorf("%d of %d replicas have deleted all keys in %v", n, len(s.replicas), clearTime)
		}
	}
	return nil
}
