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
	// formTimeout is how long a node may be silent while the cluster is formed. A node also
	// waits that long before it takes commands.
	formTimeout = time.Second
	// nodeTimeout is how long a node may be silent later: so long that no node of a busy
	// machine counts as dead. It is the default of Redis.
	nodeTimeout = 15 * time.Second
)

// A Cluster is a Redis Cluster of masters without replicas and without
// persistence. Its methods are safe for concurrent use.
type Cluster struct {
	Nodes
}

// StartCluster starts that many servers like Start, divides the slots among them, and
// returns when all take commands. That takes two to three seconds, since a new master takes
// none before. It needs Redis 7.0 or newer.
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

// freePorts returns two free ports. By default the port of the bus is the other one plus
// 10000, which may not exist.
func freePorts(ctx context.Context) (ports, error) {
	clients, err := freePort(ctx)
	if err != nil {
		return ports{}, err
	}
	bus, err := freePort(ctx)
	return ports{clients.clients, bus.clients}, err
}

// nodeArgs returns the options of a node of a cluster.
func nodeArgs(p ports) []string {
	return []string{
		"--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(p.bus), "--cluster-announce-ip", loopback,
		"--cluster-node-timeout", milliseconds(formTimeout),
	}
}

// form forms a cluster of nodes that are not connected yet.
func (c *Cluster) form(ctx context.Context) error {
	for i, node := range c.nodes {
		// Nodes with the same epoch would first have to resolve that conflict.
		if err := node.do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1); err != nil {
			return err
		}
		first, next := i*slotCount/len(c.nodes), (i+1)*slotCount/len(c.nodes)
		if err := node.do(ctx, "CLUSTER", "ADDSLOTSRANGE", first, next-1); err != nil {
			return err
		}
		for _, other := range c.nodes[:i] {
			if err := node.do(ctx, "CLUSTER", "MEET", loopback, other.ports.clients, other.ports.bus); err != nil {
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

// do sends a command and returns its error.
func (s *Server) do(ctx context.Context, command ...any) error {
	if err := s.Client.Do(ctx, command...).Err(); err != nil {
		return fmt.Errorf("%v: %w", command, err)
	}
	return nil
}

// awaitCluster returns when the node knows the owner of each slot, and takes commands.
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
