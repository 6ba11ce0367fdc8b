package network

import (
	"testing"

	"github.com/reqlock/reqlock/internal/redistest"
)

// A Network is all paths from the client processes to the servers.
type Network struct{}

// A Path is that of one client process to all servers.
type Path struct {
	// Commands is the proxy that knows commands.
	Commands *redistest.Proxy
	// Routes says where the process has to dial instead of each server.
	Routes map[string]string
}

// Start lays a network to the servers at these addresses. The cleanup of tb ends
// it with all that is on it.
func Start(tb testing.TB, servers ...string) *Network {
	tb.Helper()
	_ = servers
	return &Network{}
}

// Path returns the path of a process, which is laid when it is first asked for.
func (n *Network) Path(process int) *Path {
	_ = process
	return &Path{}
}
