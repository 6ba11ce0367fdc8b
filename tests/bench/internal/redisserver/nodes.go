package redisserver

import (
	"context"
	"errors"
	"time"
)

// Nodes are servers that know nothing of each other. Their methods are safe for
// concurrent use.
type Nodes struct {
	nodes []*Server
}

// StartNodes runs so many redis-servers as in Start, and returns when all answer.
func StartNodes(ctx context.Context, count int) (*Nodes, error) {
	n := new(Nodes)
	if err := n.start(ctx, count, freePort); err != nil {
		return nil, errors.Join(err, n.Stop())
	}
	return n, nil
}

// First returns some of the nodes, which they share: Stop ends them for both.
func (n *Nodes) First(count int) *Nodes { return &Nodes{n.nodes[:count]} }

// AwaitAge returns when all nodes have run for longer than the time, in whole seconds
// as they count it themselves.
func (n *Nodes) AwaitAge(ctx context.Context, age time.Duration) error {
	for _, node := range n.nodes {
		for {
			info, err := node.info(ctx, "server")
			if err != nil {
				return err
			}
			left := age + time.Second - secondsOf(info["uptime_in_seconds"])
			if left <= 0 {
				break
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(min(left, agePoll)):
			}
		}
	}
	return nil
}

// agePoll is the pause between two questions how old a node is.
const agePoll = 100 * time.Millisecond

// start adds servers, on ports that are chosen for each.
func (n *Nodes) start(ctx context.Context, count int, choose func(context.Context) (ports, error)) error {
	for range count {
		node, err := startOn(ctx, choose)
		if err != nil {
			return err
		}
		n.nodes = append(n.nodes, node)
	}
	return nil
}

// Addrs returns the addresses of all nodes.
func (n *Nodes) Addrs() (addrs []string) {
	for _, node := range n.nodes {
		addrs = append(addrs, node.Addr)
	}
	return addrs
}

// Used returns what all nodes together have done so far, also for each other.
func (n *Nodes) Used(ctx context.Context) (Usage, error) {
	sum := Usage{Calls: make(map[string]int64)}
	for _, node := range n.nodes {
		used, err := node.Used(ctx)
		if err != nil {
			return Usage{}, err
		}
		sum.add(used)
	}
	return sum, nil
}

// Clear deletes all keys of all nodes.
func (n *Nodes) Clear(ctx context.Context) error {
	for _, node := range n.nodes {
		if err := node.Clear(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Stop kills all nodes and returns when they are gone.
func (n *Nodes) Stop() error {
	var errs []error
	for _, node := range n.nodes {
		errs = append(errs, node.Stop())
	}
	return errors.Join(errs...)
}
