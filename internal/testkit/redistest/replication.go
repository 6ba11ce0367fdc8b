package redistest

import (
	"context"
	"fmt"
	"net"
	"slices"
)

// replicaUser is whom replicas sign in as, so that a master can turn them away
// and nobody else.
const replicaUser = "redistest-replica"

// replicated returns the args of a server that can be master and replica.
func replicated(args []string) []string {
	return slices.Concat([]string{
		"--user", replicaUser, "on", "nopass", "+psync", "+replconf", "+ping",
		"--masteruser", replicaUser,
		"--masterauth", noPassword,
		// By default the first copy waits five seconds for more replicas to
		// come, and what is written right after it up to one more.
		"--repl-diskless-sync", "no",
		// A link that breaks without a word is noticed by its silence.
		"--repl-ping-replica-period", "1",
	}, args)
}

// RefuseReplicas switches between a master that is cut off from its replicas
// (on) and one that lets them come. When it has returned, what the master is
// told reaches no replica: it is lost if the master is killed, or replaced. Its
// clients, and the other nodes and sentinels, notice nothing.
//
// It is for the nodes of a [Cluster] and the servers of [Sentinels]. A Restart
// switches it off.
func (s *Server) RefuseReplicas(on bool) {
	s.tb.Helper()
	if !on {
		s.tell("ACL", "SETUSER", replicaUser, "on")
		return
	}
	s.tell("ACL", "SETUSER", replicaUser, "off")
	s.tell("CLIENT", "KILL", "USER", replicaUser)
}

// RefuseMaster switches between a replica that is cut off from its master (on) and
// one that goes to it. When it has returned, what the master is told does not reach
// this replica, while it may reach others; it is lost if this one is promoted. The
// replica still answers clients, other nodes and sentinels. Switched off, it is back
// within a second.
//
// It is for the nodes of a [Cluster] and the servers of [Sentinels], also for one
// that is to become a replica. A Restart switches it off.
func (s *Server) RefuseMaster(on bool) {
	s.tb.Helper()
	if !on {
		s.tell("CONFIG", "SET", "masteruser", replicaUser)
		return
	}
	s.tell("CONFIG", "SET", "masteruser", replicaUser+"-nobody")
	s.tell("CLIENT", "KILL", "TYPE", "master")
}

// answers tells whether the server runs and is not paused.
func (s *Server) answers() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc != nil && !s.paused && !s.proc.exited()
}

// tell gives the server an order that it has to follow.
func (s *Server) tell(order ...any) {
	s.tb.Helper()
	if err := s.admin().Do(s.tb.Context(), order...).Err(); err != nil {
		s.tb.Fatalf("%v of %s: %v", order[:2], s.Addr(), err)
	}
}

// follows returns an error unless both sides say that the replica is one of the
// master, and it has all that the master had when it was asked.
func follows(ctx context.Context, replica, master *Server) error {
	says, err := master.admin().Do(ctx, "ROLE").Slice()
	if err != nil {
		return fmt.Errorf("ROLE of %s: %w", master.Addr(), err)
	}
	offset, ok := leads(says, replica.Addr())
	if !ok {
		return fmt.Errorf("%s does not have the replica %s yet: %v", master.Addr(), replica.Addr(), says)
	}
	says, err = replica.admin().Do(ctx, "ROLE").Slice()
	if err != nil {
		return fmt.Errorf("ROLE of %s: %w", replica.Addr(), err)
	}
	if !copies(says, master.Addr(), offset) {
		return fmt.Errorf("%s does not follow %s to %d yet: %v", replica.Addr(), master.Addr(), offset, says)
	}
	return nil
}

// leads tells whether the role is that of a master with this replica, and how
// much the master has written: "master", offset, replicas, where each replica
// is host, port, offset.
func leads(role []any, replica string) (offset int64, ok bool) {
	if len(role) != 3 {
		return 0, false
	}
	offset, _ = role[1].(int64)
	replicas, _ := role[2].([]any)
	return offset, slices.ContainsFunc(replicas, func(r any) bool {
		address, ok := r.([]any)
		return ok && len(address) == 3 && joined(address[:2]) == replica
	})
}

// copies tells whether the role is that of a replica of this master that has
// read this much: "slave", host, port, state, offset.
func copies(role []any, master string, offset int64) bool {
	if len(role) != 5 {
		return false
	}
	read, _ := role[4].(int64)
	return joined(role[1:3]) == master && role[3] == "connected" && read >= offset
}

// joined returns the host:port that an answer has in two parts.
func joined(address []any) string {
	return net.JoinHostPort(fmt.Sprint(address[0]), fmt.Sprint(address[1]))
}
