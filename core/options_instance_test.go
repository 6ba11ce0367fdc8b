package core_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/redis/registry"
	"github.com/reqlock/reqlock/internal/redis/script"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// recordOf returns the record of a process, and whether it has one.
func recordOf(t *testing.T, rdb redis.UniversalClient, prefix, process string) (registry.Process, bool) {
	t.Helper()
	p, found, err := registry.Read(t.Context(), rdb, prefix, process)
	noError(t, err)
	return p, found
}

// connectionsOf returns the lines of CLIENT LIST with the name of a process.
func connectionsOf(t *testing.T, servers *deployment, process string) (lines []string) {
	t.Helper()
	for _, server := range servers.Servers() {
		list, err := redistest.AdminClient(t, server.Addr()).ClientList(t.Context()).Result()
		noError(t, err)
		for line := range strings.Lines(list) {
			if strings.Contains(line, " name=reqlock-"+process+" ") {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// An operator finds the process of a lock by the token in Redis, what it holds and since when, and the
// connection of a process that waits. Close ends the record.
func testInstance(t *testing.T, servers *deployment) {
	servers.Grant(redistest.InstanceRights...)
	rdb, begun := servers.Client(t), time.Now()
	locks, events := servers.observed(t, servers.Client(t), core.WithCaller(true), core.WithName("account"),
		core.WithInstance(core.Instance{Service: "payments", Version: "v1.2.3", Host: "pod-1", PID: 42}))
	lease := lock(t, locks, "k")
	process, _, _ := strings.Cut(rdb.Get(t.Context(), servers.name("k")).Val(), ":")
	if acquired := events.of(core.Acquired); len(acquired) != 1 || acquired[0].Process != process || len(process) != 32 {
		t.Errorf("the token begins with %q, the events are %+v", process, acquired)
	}
	suite.Eventually(t, "there is a record", func() bool { _, found := recordOf(t, rdb, servers.prefix, process); return found })
	p, _ := recordOf(t, rdb, servers.prefix, process)
	if p.Service != "payments" || p.Version != "v1.2.3" || p.Host != "pod-1" || p.PID != 42 || p.Started.Before(begun.Add(-time.Second)) || p.Started.After(time.Now()) {
		t.Errorf("the record is %+v", p)
	}
	if ttl := rdb.PTTL(t.Context(), servers.companion("process:"+process, "p")).Val(); ttl > registry.TTL || ttl < registry.TTL-20*time.Second {
		t.Errorf("the TTL is %v", ttl)
	}

	// A process that waits before it holds anything is registered, too, with defaults.
	waiting, waitingEvents := servers.observed(t, servers.Client(t), core.WithInstance(core.Instance{}))
	await := startLock(t, waiting, "k")
	suite.Eventually(t, "it waits", func() bool { return len(waitingEvents.of(core.Waiting)) == 1 })
	other := waitingEvents.of(core.Waiting)[0].Process
	suite.Eventually(t, "there is a record", func() bool { _, found := recordOf(t, rdb, servers.prefix, other); return found })
	if p, _ := recordOf(t, rdb, servers.prefix, other); p.Service == "" || p.Host == "" || p.PID == 0 {
		t.Errorf("the record is %+v", p)
	}
	suite.Eventually(t, "the subscription has a name", func() bool { return len(connectionsOf(t, servers, other)) == 1 })
	if lines := connectionsOf(t, servers, other); strings.Contains(lines[0], " sub=0 ") && strings.Contains(lines[0], " ssub=0 ") {
		t.Errorf("this connection subscribes to nothing: %s", lines[0])
	}
	if lines := connectionsOf(t, servers, process); len(lines) != 0 {
		t.Errorf("a process without a subscription has %q", lines)
	}
	release(t, lease)
	release(t, await())

	for name, l := range map[string]*core.Locker{process: locks, other: waiting} {
		closeLocker(t, l)
		if _, found := recordOf(t, rdb, servers.prefix, name); found {
			t.Error("there is a record after Close")
		}
	}
}

// The record has the longest holds, with the code that took them. A process without the option has no
// record.
func TestRecordNamesTheHolds(t *testing.T) {
	t.Parallel()
	suite.Full(t, "waits for the second beat")
	server := redistest.Start(t)
	server.Grant(redistest.InstanceRights...)
	rdb := server.Client(t)
	locks, events := observed(t, rdb, core.WithCaller(true), core.WithInstance(core.Instance{}))
	lease := lock(t, locks.With(core.WithName("account")), "42")
	await := startLock(t, locks.With(core.WithName("waits")), "42")
	shared := lock(t, locks.With(core.WithShared(true)), "shared")
	attempt, err := locks.Begin(t.Context(), "pay", nil)
	noError(t, err)
	digest, process := events.of(core.Acquired)[0].Key.String(), events.of(core.Acquired)[0].Process
	suite.Eventually(t, "there is a record", func() bool { _, found := recordOf(t, rdb, "reqlock:", process); return found })
	silent, silentEvents := observed(t, rdb)
	release(t, lock(t, silent, "k"))
	if _, found := recordOf(t, rdb, "reqlock:", silentEvents.of(core.Acquired)[0].Process); found {
		t.Error("a process without the option has a record")
	}
	suite.Eventually(t, "a beat has the hold", func() bool { // the second beat comes after 10 s
		p, _ := recordOf(t, rdb, "reqlock:", process)
		return p.Held == 3
	})
	p, _ := recordOf(t, rdb, "reqlock:", process)
	if len(p.Holds) != 3 || p.Holds[0].Digest != digest || p.Holds[0].Lease != script.Digest(lease.Token()) || p.Holds[0].Name != "account" || !strings.Contains(p.Holds[0].Caller, "fixture_locker_test.go:") ||
		p.Holds[0].Shared || p.Holds[0].Idempotent || !p.Holds[1].Shared || p.Holds[1].Idempotent || p.Holds[2].Shared || !p.Holds[2].Idempotent {
		t.Errorf("the record is %+v, want the digest %s", p, digest)
	}
	if len(p.Waits) != 1 || p.Waits[0].Digest != digest || p.Waits[0].Name != "waits" || !strings.Contains(p.Waits[0].Caller, "fixture_locker_test.go:") ||
		p.Waits[0].Requests != 1 || p.Waits[0].Since.Before(p.Holds[0].Since) || p.Waits[0].Since.After(p.Beat) {
		t.Errorf("the record is %+v, want the digest %s", p, digest)
	}
	noError(t, attempt.Abort(t.Context()))
	release(t, shared)
	release(t, lease)
	release(t, await())
}

// Each server of a quorum has the record, also if another one is down.
func TestInstanceOfAQuorum(t *testing.T) {
	t.Parallel()
	suite.Full(t, "waits for the second beat: the first one comes before the servers vote")
	servers := startServers(t, 3)
	for _, server := range servers {
		server.Grant(redistest.InstanceRights...)
	}
	clients, events := clientsOf(t, servers), &recorder{}
	locks := newQuorum(t, clients, core.WithInstance(core.Instance{}), core.WithObserver(events.record),
		core.WithTTL(2*time.Second), core.WithCommandTimeout(time.Second))
	servers[0].Kill()
	release(t, lock(t, locks, "k"))
	process := events.of(core.Acquired)[0].Process
	for _, rdb := range clients[1:] {
		suite.Eventually(t, "there is a record", func() bool { _, found := recordOf(t, rdb, "reqlock:", process); return found })
	}
	closeLocker(t, locks)
	for _, rdb := range clients[1:] {
		if _, found := recordOf(t, rdb, "reqlock:", process); found {
			t.Error("there is a record after Close")
		}
	}
}

// A server that refuses the record is reported in one Warned event, which says what to do, and the lock
// goes on.
func TestRefusedInstanceIsAWarning(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	setUser(t, redistest.AdminClient(t, server.Addr()), "alice", "~reqlock:* ~{reqlock:k}* &* +@all", "")
	locks, events := observed(t, server.Client(t, as("alice", "secret")), core.WithInstance(core.Instance{}))
	noError(t, locks.Do(t.Context(), "k", func(context.Context) error { return nil }))
	suite.Eventually(t, "it is reported", func() bool { return len(events.of(core.Warned)) > 0 })
	warned := events.of(core.Warned)
	if text := warned[0].Err.Error(); len(warned) != 1 || !strings.HasPrefix(text, "reqlock: WithInstance: this process is not registered: ") ||
		!strings.Contains(text, "~{reqlock:*") || strings.Contains(text, "alice") || len(events.of(core.Outage)) != 0 {
		t.Errorf("warned %+v, %+v", warned, events.of(core.Outage))
	}
}

// Check finds the missing right before the first lock, also on the servers of a quorum.
func TestCheckNamesTheRightToRegister(t *testing.T) {
	t.Parallel()
	const enough = redistest.Rights + " " + redistest.QuorumRights
	var admins []*redis.Client
	var clients []redis.UniversalClient
	for _, server := range startServers(t, 3) {
		admin := server.Client(t)
		setUser(t, admin, "alice", enough, "")
		admins, clients = append(admins, admin), append(clients, server.Client(t, as("alice", "secret")))
	}
	one := newLocker(t, clients[0], core.WithInstance(core.Instance{}), patient)
	quorum := newQuorum(t, clients, core.WithInstance(core.Instance{}), patient)
	for _, locks := range []*core.Locker{one, quorum} {
		wantFinding(t, locks.Check(t.Context()), "grant it "+redistest.InstanceRight)
	}
	for _, admin := range admins {
		setUser(t, admin, "alice", enough+" "+redistest.InstanceRight, "")
	}
	for _, locks := range []*core.Locker{one, quorum} {
		noError(t, locks.Check(t.Context()))
	}
}

// Between two beats, a lock costs as much as without the option.
func TestInstanceCostsALockNothing(t *testing.T) {
	if suite.Race {
		t.Skip("the race detector drops what pools keep")
	}
	server := redistest.Reuse(t)
	server.Grant(redistest.InstanceRights...)
	rdb := server.Client(t, deadlines)
	allocations := func(locks *core.Locker) float64 {
		least := math.Inf(1) // other goroutines, such as those of the last test, only add to it
		for range 5 {
			least = min(least, testing.AllocsPerRun(100, func() { release(t, lock(t, locks, "k")) }))
		}
		return least
	}
	without, locks := allocations(newLocker(t, rdb)), newLocker(t, rdb, core.WithInstance(core.Instance{}))
	lease := lock(t, locks, "k")
	process, _, _ := strings.Cut(rdb.Get(t.Context(), "reqlock:k").Val(), ":")
	suite.Eventually(t, "the first beat is over", func() bool { _, found := recordOf(t, rdb, "reqlock:", process); return found })
	release(t, lease)
	if with := allocations(locks); with > without {
		t.Errorf("%v allocations with the option, %v without", with, without)
	}
}

// A Close that has no time left, and no server, does not wait for the record.
func TestCloseDoesNotWaitForTheRecord(t *testing.T) {
	t.Parallel()
	_, proxy, rdb := behindProxy(t)
	locks, err := core.New(rdb, core.WithInstance(core.Instance{}), core.WithCommandTimeout(time.Second))
	noError(t, err)
	release(t, lock(t, locks, "k"))
	proxy.Partition()
	begun := time.Now()
	_ = locks.Close(endedContext())
	if took := time.Since(begun); took > 2500*time.Millisecond { // the ReadTimeout of the client is 3 s
		t.Errorf("Close took %v", took)
	}
}
