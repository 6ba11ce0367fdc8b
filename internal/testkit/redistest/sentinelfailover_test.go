package redistest

import (
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func reaches(t *testing.T, client *redis.Client, server *Server) {
	t.Helper()
	port := server.Client(t).ConfigGet(t.Context(), "port").Val()["port"]
	got, err := client.ConfigGet(t.Context(), "port").Result()
	if err != nil || got["port"] != port {
		t.Errorf("the client reaches %v (%v), want port %s", got, err, port)
	}
}

func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	suite.Full(t, "waits for a failover and a restart")
	s := StartSentinel(t)
	client := s.Client(t)
	master := s.Master()
	keptAndLost(t, master, "kept", "lost")
	// Two sentinels are a quorum and a majority.
	absent := s.Sentinels()[0]
	absent.Kill()

	now := s.Failover()
	if now == master || s.Master() != now || slices.Contains(s.Replicas(), now) {
		t.Errorf("%s was promoted", now.Addr())
	}
	has(t, now, "kept", "v")
	has(t, now, "lost", "")
	reaches(t, client, now)

	master.Restart()
	absent.Restart()
	s.Await()
	if s.Master() != now {
		t.Error("the restarted server is the master again")
	}
	has(t, master, "kept", "v")
	has(t, master, "lost", "")
}

func TestSentinelFailoverOfLivingMaster(t *testing.T) {
	t.Parallel()
	suite.Full(t, "has several failovers, one after the other")
	s := StartSentinel(t)
	client := s.Client(t)
	first := s.Master()
	second := s.Switch()
	if second == first || s.Master() != second {
		t.Fatalf("switched to %s", second.Addr())
	}
	reaches(t, client, second)

	third := s.Split()
	if third == second || s.Master() != third {
		t.Fatalf("split into %s", third.Addr())
	}
	reaches(t, client, third)
	// Both remain masters.
	for server, value := range map[*Server]string{second: "old", third: "new"} {
		if err := server.Client(t).Set(t.Context(), "k", value, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	s.Await()
	has(t, second, "k", "old")
	has(t, third, "k", "new")

	s.Heal()
	if s.Master() != third {
		t.Error("the new master is none any more")
	}
	for _, server := range s.Servers() {
		has(t, server, "k", "new")
		admits(t, server)
	}

	third.Pause()
	fourth := s.AwaitFailover(third)
	third.Resume()
	s.Await()
	if s.Master() != fourth || fourth == third {
		t.Error("the stopped master is the master again")
	}
}
