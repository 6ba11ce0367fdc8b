package redisserver

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

const (
	// slotCount is the number of slots of every Redis Cluster.
	slotCount = 16384
	// formTimeout is how long a node may be silent while the cluster is formed.
	// A node waits so long before it takes commands.
	formTimeout = time.Second
	// nodeTimeout is how long a node may be silent afterwards: long enough that
	// a busy machine is not taken for a dead node. It is the default of Redis.
	nodeTimeout = 15 * time.Second
)

// A Cluster is a Redis Cluster of masters without replicas and without
// persistence. Its methods are safe for concurrent use.
type Cluster struct {
	Nodes
}

// StartCluster runs so many redis-servers as in Start, divides the slots among
// them, and returns when all take commands: after two to three seconds, because a
// master that was just started takes none before. It takes Redis 7.0 or newer.
func StartCluster(ctx context.Context, masters int) (*Cluster, error) {
	c := new(Cluster)
	if err := c.start(ctx, masters, freePorts); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	if err := c.form(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("form a cluster: %w", err), c.Stop())
	}
	return c, nil
}

// freePorts returns two ports that nobody listens on just now. By default that of
// the bus is 10000 above the other, where there may be none.
func freePorts(ctx context.Context) (ports, error) {
	clients, err := freePort(ctx)
	if err != nil {
		return ports{}, err
	}
	bus, err := freePort(ctx)
	return ports{clients.clients, bus.clients}, err
}

// nodeArgs are the options of a server that is a node of a cluster.
func nodeArgs(p ports) []string {
	return []string{
		"--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(p.bus), "--cluster-announce-ip", loopback,
		"--cluster-node-timeout", milliseconds(formTimeout),
	}
}

// form makes a cluster of nodes that know nothing yet.
func (c *Cluster) form(ctx context.Context) error {
	for i, node := range c.nodes {
		// With the same epoch the nodes would have to sort it out first.
		if err := node.tell(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1); err != nil {
			return err
		}
		first, next := i*slotCount/len(c.nodes), (i+1)*slotCount/len(c.nodes)
		if err := node.tell(ctx, "CLUSTER", "ADDSLOTSRANGE", first, next-1); err != nil {
			return err
		}
		for _, other := range c.nodes[:i] {
			if err := node.tell(ctx, "CLUSTER", "MEET", loopback, other.ports.clients, other.ports.bus); err != nil {
				return err
			}
		}
	}
	for _, node := range c.nodes {
		if err := node.awaitCluster(ctx); err != nil {
			return err
		}
	}
	for _, node := range c.nodes {
		if err := node.Client.ConfigSet(ctx, "cluster-node-timeout", milliseconds(nodeTimeout)).Err(); err != nil {
			return err
		}
	}
	return nil
}

// tell sends a command of which only the error matters.
func (s *Server) tell(ctx context.Context, command ...any) error {
	if err := s.Client.Do(ctx, command...).Err(); err != nil {
		return fmt.Errorf("%v: %w", command, err)
	}
	return nil
}

// awaitCluster returns when the node knows who serves each slot, and takes commands.
func (s *Server) awaitCluster(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for {
		info, err := s.Client.ClusterInfo(ctx).Result()
		if err != nil {
			return err
		}
		if parseInfo(info)["cluster_state"] == "ok" {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s takes no commands: %w: %s", s.Addr, ctx.Err(), strings.Join(strings.Fields(info), ", "))
		case <-time.After(startPoll):
		}
	}
}

// milliseconds returns a duration as Redis reads it.
func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
