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
	program := Program(tb)
	servers := group{newServer(tb, program, replicated(args)), newServer(tb, program, replicated(args))}
	servers.start(tb)
	master, replica := servers[0], servers[1]
	replica.mustRun("REPLICAOF", "127.0.0.1", master.port)
	servers.await(tb, "the replica", func(ctx context.Context) error { return follows(ctx, replica, master) })
	return master
}
