package redistest

import (
	"slices"
	"testing"
)

// Deployment is the servers of one kind, for tests that must come out the same
// on each.
type Deployment struct {
	// Kind is of what kind they are.
	Kind Kind

	servers   group
	sentinels *Sentinels
	cluster   *Cluster
	await     func()
}

// Servers returns those that hold data: masters and replicas. The slice belongs
// to the caller.
func (d *Deployment) Servers() []*Server { return slices.Clone(d.servers) }

// Proxy starts a proxy in front of all servers that hold data. Clients with
// [Through] use it.
func (d *Deployment) Proxy(tb testing.TB) *Proxy {
	tb.Helper()
	var addrs []string
	for _, server := range d.servers {
		addrs = append(addrs, server.Addr())
	}
	return NewProxy(tb, addrs[0], addrs[1:]...)
}

// Kill ends all servers that hold data at once.
func (d *Deployment) Kill() {
	for _, server := range d.servers {
		server.Kill()
	}
}

// Restart brings them back without their data, and returns when all are well.
func (d *Deployment) Restart() {
	for _, server := range d.servers {
		server.Restart()
	}
	d.await()
}

// Grant adds words to the rule of those who do not sign in, on all servers, where
// they are restricted, until a server is started again.
func (d *Deployment) Grant(words ...string) {
	for _, server := range d.servers {
		server.Grant(words...)
	}
}
