package redistest

import (
	"context"
	"testing"
)

// StartReplicated runs a master with one replica, on free loopback ports and without
// persistence, and returns the master once the replica has its data. No sentinel watches
// them. The args are added to the command line of both.
//
// The processes end as those of [Start] do, and a test is skipped or fails where
// redis-server is not installed as with Start.
func StartReplicated(tb testing.TB, args ...string) (master *Server) {
	tb.Helper()
	return StartReplicas(tb, 1, args...)[0]
}

// StartReplicas is [StartReplicated] with that many replicas. It returns all servers, the master
// first.
func StartReplicas(tb testing.TB, replicas int, args ...string) []*Server {
	tb.Helper()
	program := Program(tb)
	var servers group
	for range 1 + replicas {
		servers = append(servers, newServer(tb, program, replicated(args)))
	}
	servers.start(tb)
	master := servers[0]
	for _, replica := range servers[1:] {
		replica.mustRun("REPLICAOF", "127.0.0.1", master.port)
	}
	for _, replica := range servers[1:] {
		servers.await(tb, "a replica", func(ctx context.Context) error { return follows(ctx, replica, master) })
	}
	return servers
}
