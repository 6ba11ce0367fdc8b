package redisserver

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// Replicated is a master with replicas, without persistence. Its methods are safe for
// concurrent use.
type Replicated struct {
	all *Nodes // the master first
}

// StartReplicated starts a master and that many replicas. It returns when the replicas are in
// sync. The master pings its replicas as often as by default, not as often as in tests.
func StartReplicated(tb testing.TB, replicas int) *Replicated {
	tb.Helper()
	return &Replicated{newNodes(tb, redistest.StartReplicas(tb, replicas, "--repl-ping-replica-period", "10"))}
}

func (r *Replicated) master() *Server { return r.all.nodes[0] }

// Addrs returns the address of the master.
func (r *Replicated) Addrs() []string { return r.master().Addrs() }

// Used returns the usage of the master, with the CPU time of the replicas added.
func (r *Replicated) Used(ctx context.Context) (Usage, error) {
	sum, err := r.master().Used(ctx)
	if err != nil {
		return Usage{}, err
	}
	for _, replica := range r.all.nodes[1:] {
		used, err := replica.Used(ctx)
		if err != nil {
			return Usage{}, err
		}
		sum.CPU += used.CPU
	}
	return sum, nil
}

// clearTime is how long replicas may take to delete all keys, too.
const clearTime = 2 * time.Second

// Clear deletes all keys, and returns when the replicas have, too.
func (r *Replicated) Clear(ctx context.Context) error {
	replicas := len(r.all.nodes) - 1
	orders := r.master().Client.Pipeline()
	orders.FlushAll(ctx)
	acknowledged := orders.Do(ctx, "WAIT", replicas, clearTime.Milliseconds())
	if _, err := orders.Exec(ctx); err != nil {
		return err
	}
	n, err := acknowledged.Int()
	if err == nil && n < replicas {
		err = fmt.Errorf("%d of %d replicas have deleted all keys in %v", n, replicas, clearTime)
	}
	return err
}
