package redistest

import (
	"slices"
	"testing"
)

// Deployment is the servers of one kind, for tests with the same result on each kind.
type Deployment struct {
	// Kind is the kind of the servers.
	Kind Kind

	servers   group
	sentinels *Sentinels
	cluster   *Cluster
	await     func()
}

// Servers returns the servers with data: masters and replicas. The slice belongs
// to the caller.
func (d *Deployment) Servers() []*Server { return slices.Clone(d.servers) }

// Proxy starts a proxy in front of all servers with data. Clients with
// [Through] use it.
func (d *Deployment) Proxy(tb testing.TB) *Proxy {
	tb.Helper()
	var addrs []string
	for _, server := range d.servers {
		addrs = append(addrs, server.Addr())
	}
	return NewProxy(tb, addrs[0], addrs[1:]...)
}

// Kill kills all servers with data.
func (d *Deployment) Kill() {
	for _, server := range d.servers {
		server.Kill()
	}
}

// Restart restarts these servers with empty memory, and returns when they are healthy.
func (d *Deployment) Restart() {
	for _, server := range d.servers {
		server.Restart()
	}
	d.await()
}

// Grant is [Server.Grant] on all servers with data.
func (d *Deployment) Grant(rights ...string) {
	for _, server := range d.servers {
		server.Grant(rights...)
	}
}
