package redisserver

import (
	"context"
	"errors"
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
