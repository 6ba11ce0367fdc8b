package redistest

import (
	"context"
	"fmt"
	"net"
	"slices"
	"testing"
)

// replicaUser is the user of replicas, so that a master can refuse them and no other
// client.
const replicaUser = "redistest-replica"

func replicated(args []string) []string {
	return slices.Concat([]string{
		"--user", replicaUser, "on", "nopass", "+psync", "+replconf", "+ping",
		"--masteruser", replicaUser,
		"--masterauth", noPassword,
		// By default the first synchronization waits five seconds for more replicas, and a
		// write after it up to one second more.
		"--repl-diskless-sync", "no",
		// A link that breaks without a close is detected by missing pings.
		"--repl-ping-replica-period", "1",
	}, args)
}

// RefuseReplicas makes a master refuse its replicas (on) or accept them. After it has
// returned, no write reaches a replica: writes are lost if the master is killed or
// replaced. Clients, other nodes and sentinels are not affected.
//
// It is for the nodes of a [Cluster] and the servers of [Sentinels]. A Restart
// switches it off.
func (s *Server) RefuseReplicas(on bool) {
	s.tb.Helper()
	if !on {
		s.mustRun("ACL", "SETUSER", replicaUser, "on")
		return
	}
	s.mustRun("ACL", "SETUSER", replicaUser, "off")
	s.mustRun("CLIENT", "KILL", "USER", replicaUser)
}

// RefuseMaster disconnects a replica from its master (on) or lets it connect again. After it
// has returned, writes do not reach this replica, while they may reach others; they are lost
// if this replica is promoted. The replica still answers clients, other nodes and sentinels.
// It connects again within a second.
//
// It is for the nodes of a [Cluster] and the servers of [Sentinels], also for one
// that is to become a replica. A Restart switches it off.
func (s *Server) RefuseMaster(on bool) {
	s.tb.Helper()
	if !on {
		s.mustRun("CONFIG", "SET", "masteruser", replicaUser)
		return
	}
	s.mustRun("CONFIG", "SET", "masteruser", replicaUser+"-unknown")
	s.mustRun("CLIENT", "KILL", "TYPE", "master")
}

// isUp reports whether the server runs and is not paused.
func (s *Server) isUp() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc != nil && !s.paused && !s.proc.HasEnded()
}

// mustRun runs a command on the server, which must succeed.
func (s *Server) mustRun(command ...any) {
	s.tb.Helper()
	if err := s.admin().Do(s.tb.Context(), command...).Err(); err != nil {
		s.tb.Fatalf("%v of %s: %v", command[:2], s.Addr(), err)
	}
}

// follows returns an error unless both servers report that the replica is a replica of the
// master, and it has all writes that the master had before.
func follows(ctx context.Context, replica, master *Server) error {
	role, err := master.admin().Do(ctx, "ROLE").Slice()
	if err != nil {
		return fmt.Errorf("ROLE of %s: %w", master.Addr(), err)
	}
	offset, ok := isMasterOf(role, replica.Addr())
	if !ok {
		return fmt.Errorf("%s does not have the replica %s yet: %v", master.Addr(), replica.Addr(), role)
	}
	role, err = replica.admin().Do(ctx, "ROLE").Slice()
	if err != nil {
		return fmt.Errorf("ROLE of %s: %w", replica.Addr(), err)
	}
	if !isReplicaOf(role, master.Addr(), offset) {
		return fmt.Errorf("%s does not follow %s to %d yet: %v", replica.Addr(), master.Addr(), offset, role)
	}
	return nil
}

// isMasterOf reports whether the role is a master with this replica, and returns the offset
// of the master. The role is "master", offset, replicas, where each replica is host, port,
// offset.
func isMasterOf(role []any, replica string) (offset int64, ok bool) {
	if len(role) != 3 {
		return 0, false
	}
	offset, _ = role[1].(int64)
	replicas, _ := role[2].([]any)
	return offset, slices.ContainsFunc(replicas, func(r any) bool {
		address, ok := r.([]any)
		return ok && len(address) == 3 && joinAddr(address[:2]) == replica
	})
}

// isReplicaOf reports whether the role is a replica of this master that has reached the
// offset. The role is "slave", host, port, state, offset.
func isReplicaOf(role []any, master string, offset int64) bool {
	if len(role) != 5 {
		return false
	}
	read, _ := role[4].(int64)
	return joinAddr(role[1:3]) == master && role[3] == "connected" && read >= offset
}

func joinAddr(address []any) string {
	return net.JoinHostPort(fmt.Sprint(address[0]), fmt.Sprint(address[1]))
}

// StartReplicated runs a master with one replica, on free loopback ports and without
// persistence, and returns the master once the replica has its data. No sentinel watches
// them. The args are added to the command line of both.
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
