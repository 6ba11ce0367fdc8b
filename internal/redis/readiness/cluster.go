package readiness

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/keyspace"
	"github.com/reqlock/reqlock/internal/redis/redisstore"
	"github.com/reqlock/reqlock/internal/redis/topology"
)

// maxTries limits the search for a key of each master of a cluster. A master that is not found
// has so few slots that it has hardly any locks.
const maxTries = 1 << 16

// maxPoolTries limits the search for a master with a busy pool.
const maxPoolTries = 1 << 8

// A target is a server to check.
type target struct {
	key  string // a unique lock key in a slot of this server
	addr string // "" if there is only one server
	node redis.UniversalClient
	// hasAll says that the server is the only master of a cluster with keys of the prefix.
	hasAll bool
}

// targets returns the servers that can have locks: the single server, or each master of a
// cluster that can have keys of this prefix.
func (c *Check) targets(ctx context.Context) ([]target, error) {
	cluster, isCluster := c.rdb.(topology.Cluster)
	if !isCluster {
		return []target{{key: newProbeKey(), node: c.rdb}}, nil
	}
	var found []target
	err := c.within(ctx, func(ctx context.Context) (err error) {
		found, err = c.masters(ctx, cluster)
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(found) == 1 {
		found[0].hasAll = true
	}
	return found, nil
}

// masters returns each master of a cluster with a key in one of its slots.
func (c *Check) masters(ctx context.Context, cluster topology.Cluster) ([]target, error) {
	var mu sync.Mutex
	missing := make(map[string]bool)
	err := cluster.ForEachMaster(ctx, func(_ context.Context, node *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		missing[node.Options().Addr] = true
		return nil
	})
	if err != nil {
		return nil, err
	}
	names := keyspace.New(c.prefix)
	tries := maxTries
	if keyspace.HasTag(c.prefix) { // all keys are in one slot
		tries = 1
	}
	var found []target
	for i := 0; i < tries && len(missing) > 0; i++ {
		key := newProbeKey()
		node, err := cluster.MasterForKey(ctx, names.Lock(key))
		if err != nil {
			return nil, err
		}
		if addr := node.Options().Addr; missing[addr] || tries == 1 {
			delete(missing, addr)
			found = append(found, target{key: key, addr: addr, node: node})
		}
	}
	slices.SortFunc(found, func(a, b target) int { return strings.Compare(a.addr, b.addr) })
	return found, nil
}

// busyPool returns the number of connections in a pool of the client that is busy: see
// topology.BusyPool. It returns 0 if it finds none.
func (c *Check) busyPool(ctx context.Context, rdb redis.UniversalClient) int {
	if server, ok := rdb.(topology.Server); ok {
		return topology.BusyPool(server)
	}
	cluster, isCluster := rdb.(topology.Cluster)
	if !isCluster {
		return 0
	}
	conns := 0
	err := c.within(ctx, func(ctx context.Context) error {
		for tries := 0; tries < maxPoolTries && conns == 0; tries++ {
			master, err := cluster.MasterForKey(ctx, newProbeKey()) // without I/O, if the client knows the slots
			if err != nil {
				return err
			}
			conns = topology.BusyPool(master)
		}
		return nil
	})
	if err != nil {
		return 0
	}
	return conns
}

// readOtherSlots reads keys of many slots through a client of one server. If the server is a
// node of a cluster, one of the reads fails.
func (p *probe) readOtherSlots(ctx context.Context) error {
	if p.target.addr != "" {
		return nil
	}
	return p.check.within(ctx, func(ctx context.Context) error {
		pipe := p.target.node.Pipeline()
		for range 16 {
			_ = pipe.Process(ctx, command.New(1, []any{"get", p.names.Lock(newProbeKey())}))
		}
		cmds, execErr := pipe.Exec(ctx)
		for _, cmd := range cmds {
			if _, err := cmd.(*command.Generic).Reply(execErr); err != nil {
				return err
			}
		}
		return nil
	})
}

// newProbeKey returns a unique lock key.
func newProbeKey() string { return keyMark + redisstore.NewProcess() }
