package redisserver

import (
	"context"
	"errors"
	"time"
)

// Nodes are independent servers. Their methods are safe for concurrent use.
type Nodes struct {
	nodes []*Server
}

// StartNodes starts that many servers like Start, and returns when all reply.
func StartNodes(ctx context.Context, count int) (*Nodes, error) {
	n := new(Nodes)
	if err := n.start(ctx, count, freePort); err != nil {
		return nil, errors.Join(err, n.Stop())
	}
	return n, nil
}

// First returns some of the nodes. They are shared: Stop of either ends them.
func (n *Nodes) First(count int) *Nodes { return &Nodes{n.nodes[:count]} }

// AwaitAge returns when all nodes have run for longer than age, in whole seconds by their
// own count.
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

// agePoll is how often the age of a node is checked.
const agePoll = 100 * time.Millisecond

// start starts servers, on ports that choose returns.
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

// Used returns the sum over all nodes, including traffic among them.
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

// Stop kills all nodes, and returns when they have ended.
func (n *Nodes) Stop() error {
	var errs []error
	for _, node := range n.nodes {
		errs = append(errs, node.Stop())
	}
	return errors.Join(errs...)
}
