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

// maxTries bounds the search for a key of each master of a cluster. One that has
// so few slots that it is not found has hardly any locks either.
const maxTries = 1 << 16

// A target is a server that a Check looks at.
type target struct {
	key  string // a lock key that is nobody's, and lies on this server
	addr string // "" where there is only one server
	node redis.UniversalClient
}

// targets returns the servers on which locks can lie: the one, or each master of
// a cluster that has keys of this prefix.
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
	return found, nil
}

// masters finds a key for each master of a cluster.
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
	if keyspace.HasTag(c.prefix) { // all keys lie in one slot
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

// elsewhere reads keys of many slots, by which a client of one server learns that
// it is a node of a cluster.
func (s *scene) elsewhere(ctx context.Context) error {
	if s.target.addr != "" {
		return nil
	}
	return s.check.within(ctx, func(ctx context.Context) error {
		pipe := s.target.node.Pipeline()
		for range 16 {
			_ = pipe.Process(ctx, command.New(1, []any{"get", s.names.Lock(newProbeKey())}))
		}
		cmds, whole := pipe.Exec(ctx)
		for _, cmd := range cmds {
			if _, err := cmd.(*command.Generic).Reply(whole); err != nil {
				return err
			}
		}
		return nil
	})
}

// newProbeKey returns a lock key that is nobody's.
func newProbeKey() string { return checkMark + redisstore.NewProcess() }
