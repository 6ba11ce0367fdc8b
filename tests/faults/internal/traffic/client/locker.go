package client

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
)

// newLocker returns the Locker of the process, and a function that closes its clients of
// go-redis after it.
func (o *Config) newLocker() (locks *core.Locker, disconnect func() error, err error) {
	options := []core.Option{
		core.WithTTL(o.TTL), core.WithCommandTimeout(o.CommandTimeout),
	}
	if o.FailFast != 0 {
		options = append(options, core.WithFailFast(o.FailFast))
	}
	if o.Prefix != "" {
		options = append(options, core.WithPrefix(o.Prefix))
	}
	if o.Quarantine != 0 {
		return o.newQuorum(append(options, core.WithQuarantine(o.Quarantine)))
	}
	options = append(options, core.WithFencing(true))
	if o.Replicas > 0 {
		options = append(options, core.WithReplicas(o.Replicas, o.ReplicaTimeout))
	}
	rdb := o.connect(o.Redis.Addrs...)
	locks, err = core.New(rdb, options...)
	return locks, rdb.Close, err
}

// newQuorum returns a Locker on independent servers.
func (o *Config) newQuorum(options []core.Option) (locks *core.Locker, disconnect func() error, err error) {
	var clients []redis.UniversalClient
	for _, addr := range o.Redis.Addrs {
		clients = append(clients, o.connect(addr))
	}
	locks, err = core.NewQuorum(clients, options...)
	return locks, func() error {
		var failures []error
		for _, rdb := range clients {
			failures = append(failures, rdb.Close())
		}
		return errors.Join(failures...)
	}, err
}

// connect returns a client of go-redis. In every other process its reads end with their
// context, which the Locker handles differently.
func (o *Config) connect(addrs ...string) redis.UniversalClient {
	options := &redis.UniversalOptions{
		Addrs: addrs, MasterName: o.Redis.MasterName, Password: o.Redis.Password,
		Dialer: o.dial, ReadTimeout: o.ReadTimeout, ContextTimeoutEnabled: o.Process%2 == 0,
	}
	if !o.AsCluster {
		return redis.NewUniversalClient(options)
	}
	cluster := options.Cluster()
	cluster.ClusterSlots = func(context.Context) ([]redis.ClusterSlot, error) {
		return []redis.ClusterSlot{{Start: 0, End: 16383, Nodes: []redis.ClusterNode{{Addr: addrs[0]}}}}, nil
	}
	return redis.NewClusterClient(cluster)
}
