package redistest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// reaches asserts that the client of the sentinels is connected to this server.
func reaches(t *testing.T, client *redis.Client, server *Server) {
	t.Helper()
	port := server.Client(t).ConfigGet(t.Context(), "port").Val()["port"]
	got, err := client.ConfigGet(t.Context(), "port").Result()
	if err != nil || got["port"] != port {
		t.Errorf("the client reaches %v (%v), want port %s", got, err, port)
	}
}

func TestSentinel(t *testing.T) {
	t.Parallel()
	started := time.Now()
	s := StartSentinel(t, "--requirepass", "secret", "--min-replicas-to-write", "2")
	t.Logf("the sentinels are up after %v", time.Since(started))

	master, replicas := s.Master(), s.Replicas()
	if master != s.Servers()[0] || !slices.Equal(replicas, s.Servers()[1:]) {
		t.Fatalf("the master is %s", master.Addr())
	}
	client := s.Client(t, func(o *redis.FailoverOptions) { o.ClientName = "test" })
	if client.Options().MaxRetries != 3 || client.ClientGetName(t.Context()).Val() != "test" {
		t.Errorf("got %d retries, want the default of 3", client.Options().MaxRetries)
	}
	if err := client.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	reaches(t, client, master)
	for _, replica := range replicas {
		awaitKey(t, replica.Client(t), "k", "v")
	}
	if _, err := s.replaced(t.Context(), master); err == nil || !strings.Contains(err.Error(), "is still the master") {
		t.Errorf("nothing has happened: got %v", err)
	}
	for _, watcher := range s.Sentinels() {
		c := redis.NewSentinelClient(&redis.Options{Addr: watcher.Addr()})
		if err := c.CkQuorum(t.Context(), MasterName).Err(); err != nil {
			t.Error(err)
		}
		if others := c.Sentinels(t.Context(), MasterName).Val(); len(others) != 2 {
			t.Errorf("%s knows %d others", watcher.Addr(), len(others))
		}
		_ = c.Close()
	}

	// healthy detects faults before the sentinels do.
	master.RefuseReplicas(true)
	if _, err := s.healthy(t.Context()); err == nil || !strings.Contains(err.Error(), "does not have the replica") {
		t.Errorf("without replicas: got %v", err)
	}
	master.Pause()
	if _, err := s.healthy(t.Context()); err == nil || !strings.Contains(err.Error(), "does not run") {
		t.Errorf("without a master: got %v", err)
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

	started := time.Now()
	now := s.Failover()
	t.Logf("failed over after %v", time.Since(started))
	if now == master || s.Master() != now || slices.Contains(s.Replicas(), now) {
		t.Errorf("%s was promoted", now.Addr())
	}
	has(t, now, "kept", "v")
	has(t, now, "lost", "")
	reaches(t, client, now)

	started = time.Now()
	master.Restart()
	absent.Restart()
	s.Await()
	t.Logf("restarted after %v", time.Since(started))
	if s.Master() != now {
		t.Error("the restarted server is the master again")
	}
	has(t, master, "kept", "v")
	has(t, master, "lost", "")

	period := redis.NewMapStringStringCmd(t.Context(), "SENTINEL", "DEBUG")
	if err := absent.admin().Process(t.Context(), period); err != nil || period.Val()["PUBLISH-PERIOD"] != "200" {
		t.Errorf("a restarted sentinel has long periods: %v %v", period.Val(), err)
	}
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

// Sentinels that demote a second master quickly do not demote the promoted server.
func TestNoSentinelUndoesASwitch(t *testing.T) {
	t.Parallel()
	suite.Full(t, "checks for a rare race of the sentinels")
	s := StartSentinel(t)
	old := s.Master()
	s.publishEvery(10 * time.Millisecond) // they do for four of these
	if promoted := s.Switch(); promoted == old || promoted != s.Master() {
		t.Errorf("%s is the master after %s", promoted.Addr(), old.Addr())
	}
}

// A replica is promoted even if it was cut off for longer than the usual timeouts of the
// sentinels allow.
func TestSentinelPromotesAReplicaThatWasCutOffForLong(t *testing.T) {
	t.Parallel()
	suite.Full(t, "cuts replicas off for longer than ten timeouts of a sentinel")
	s := StartSentinel(t)
	master := s.Master()
	master.RefuseReplicas(true)
	// The last sentinel allows ten times its timeout.
	const long = 10*(downAfter+2*downStep) + 2*time.Second
	suite.Eventually(t, fmt.Sprint("the replicas are cut off for ", long), suite.Every(agreePoll, func() bool { return s.cutOff() >= long }))
	if now := s.Failover(); now == master {
		t.Errorf("%s was promoted", now.Addr())
	}
}
