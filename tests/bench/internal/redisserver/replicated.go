package redisserver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Replicated is a master with replicas, without persistence. Its methods are safe for
// concurrent use.
type Replicated struct {
	all Nodes // the master first
}

// StartReplicated starts a server like Start, and that many replicas. It returns when the
// replicas are in sync, in less than two seconds.
func StartReplicated(ctx context.Context, replicas int) (*Replicated, error) {
	r := new(Replicated)
	err := r.all.start(ctx, 1+replicas, freePort)
	if err == nil {
		err = r.follow(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start a master with replicas: %w", err), r.Stop())
	}
	return r, nil
}

func (r *Replicated) master() *Server { return r.all.nodes[0] }

// follow makes all servers except the first one replicas of it.
func (r *Replicated) follow(ctx context.Context) error {
	// By default the master waits five seconds for more replicas.
	if err := r.master().Client.ConfigSet(ctx, "repl-diskless-sync-delay", "0").Err(); err != nil {
		return err
	}
	for _, replica := range r.all.nodes[1:] {
		if err := replica.do(ctx, "REPLICAOF", loopback, r.master().ports.clients); err != nil {
			return err
		}
	}
	return r.awaitOnline(ctx)
}

// awaitOnline returns when the master replicates to all replicas.
func (r *Replicated) awaitOnline(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for {
		info, err := r.master().Client.Info(ctx, "replication").Result()
		if err != nil {
			return err
		}
		if strings.Count(info, "state=online") == len(r.all.nodes)-1 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s has not all of its replicas: %w: %s", r.master().Addr, ctx.Err(), strings.Join(strings.Fields(info), ", "))
		case <-time.After(startPoll):
		}
	}
}

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

// Stop kills all servers and returns when they are gone.
func (r *Replicated) Stop() error { return r.all.Stop() }
