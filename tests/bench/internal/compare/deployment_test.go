package compare

import (
	"slices"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/bench/internal/load"
	"github.com/reqlock/reqlock/tests/bench/internal/lock"
	"github.com/reqlock/reqlock/tests/bench/internal/redisserver"
	"github.com/reqlock/reqlock/tests/bench/internal/runner"
)

func TestMain(m *testing.M) { suite.Main(m) }

func TestSuitesRunOnTheirOwnKindOfServers(t *testing.T) {
	redistest.Program(t)
	l := &runner.Runner{TB: t, Server: &redisserver.Server{Addr: "127.0.0.1:1"}} // no command is sent to it
	quorum := make(map[string]bool)
	for _, s := range Suites() {
		want := max(1, s.Masters, s.Nodes)
		on := s.deploy(t, l)
		all := s.Masters == 0 && s.Replicas == 0 && s.Nodes == 0
		if got := len(on.Addrs()); got != want || (on == deployment(l.Server)) != all {
			t.Errorf("%s runs on %d servers, want %d", s.Name, got, want)
		}
		for _, job := range s.jobs(l, on, s.Locks[0], "") {
			if loop, ok := job.(*load.Loop); ok && !slices.Equal(loop.Addrs, on.Addrs()) {
				t.Errorf("%s: a child gets %v, want %v", s.Name, loop.Addrs, on.Addrs())
			}
		}
		if s.Nodes > 0 {
			for _, addr := range on.Addrs() {
				quorum[addr] = true
			}
		}
	}
	if len(quorum) != runner.MaxQuorum {
		t.Errorf("the suites of quorums have %d servers together, want %d", len(quorum), runner.MaxQuorum)
	}
}

// Each lock runs on the kind of servers that it is made for.
func TestLocksRunWhereTheyAreMadeFor(t *testing.T) {
	for _, s := range Suites() {
		for _, kind := range lock.Kinds() {
			if !slices.Contains(s.Locks, kind.Name) {
				continue
			}
			if kind.Place == lock.OnReplica && s.Replicas == 0 || (kind.Place == lock.OnQuorum) != (s.Nodes > 0) {
				t.Errorf("%s runs in %s", kind.Name, s.Name)
			}
		}
	}
}
