package redisstore

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/script"
	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// oneReplica is the replica of each master of a cluster. Its timeout leaves room for a busy
// machine.
var oneReplica = command.Replicas{Count: 1, Timeout: 5 * time.Second}

// startReplicatedCluster starts a cluster. Clients may use WAIT.
func startReplicatedCluster(t *testing.T) *redistest.Cluster {
	t.Helper()
	cluster := redistest.StartCluster(t)
	for _, node := range cluster.Nodes() {
		node.Grant(redistest.ReplicaRights)
	}
	return cluster
}

// wantAcknowledged fails the test unless the commands are so many scripts and one WAIT, all on
// one connection.
func wantAcknowledged(t *testing.T, all []ranCommand, scripts int) {
	t.Helper()
	sent, waits := named(all, "EVALSHA"), named(all, "WAIT")
	if len(sent) != scripts || len(waits) != 1 || slices.ContainsFunc(sent, func(r ranCommand) bool { return r.from != waits[0].from }) {
		t.Errorf("want %d scripts and one WAIT on one connection: %v", scripts, all)
	}
}

// A batch with keys of several masters has one WAIT for each master.
func TestBatchOfSeveralMastersWaitsOnEachMaster(t *testing.T) {
	t.Parallel()
	cluster := startReplicatedCluster(t)
	r := storetest.NewClusterProxies(t, cluster)
	var releases []func()
	for _, proxy := range r.Proxies { // the first batch waits for the slots, and the next commands wait for the first batch
		release, _ := proxy.HoldCommand(redistest.Named("CLUSTER"))
		releases = append(releases, release)
	}
	s := newReplicatedStore(t, r.Client(t, storetest.SlowClusterReads), oneReplica)
	tags, newCommands := storetest.TagsOf(t, cluster), make(map[*redistest.Server]func() []ranCommand)
	for master := range tags {
		if err := master.Client(t).ScriptLoad(t.Context(), s.scripts.Take.Source.(string)).Err(); err != nil {
			t.Fatal(err)
		}
		newCommands[master] = monitor(t, master)
	}
	var tokens storetest.Tokens
	answers := make(chan string, 10)
	take := func(key string) {
		s.Store.Take(tokens.Request(key).Take(), func(got store.Answer, err error) { answers <- answerOf(got, err) })
	}
	first := ""
	for _, tag := range tags {
		first = tag
	}
	take(first + "alone")
	for _, tag := range tags {
		for i := range 3 {
			take(fmt.Sprint(tag, i))
		}
	}
	for _, release := range releases {
		release()
	}
	for range 10 {
		if got := suite.Receive(t, "each take is answered", answers); got != "granted" {
			t.Errorf("got %q", got)
		}
	}
	for master, tag := range tags {
		all := newCommands[master]()
		if tag == first {
			end := slices.IndexFunc(all, func(r ranCommand) bool { return r.name == "WAIT" }) + 1
			wantAcknowledged(t, all[:end], 1)
			all = all[end:]
		}
		wantAcknowledged(t, all, 3)
	}
}

// A redirected command waits for the replicas of the node that the redirection names.
func TestRedirectsWithReplicas(t *testing.T) {
	suite.Full(t, "repeats redirects where replicas have to acknowledge commands")
	t.Parallel()
	cluster := startReplicatedCluster(t)
	t.Run("a slot has moved", func(t *testing.T) {
		m := newMovingSlot(t, cluster, true)
		s := m.replicatedStore(t, oneReplica)
		m.Cluster.MoveSlot(m.tag, m.to)
		all, free := m.questions(t, s, "")
		m.ask(t, s, all...)
		m.mustHold(t, free)
	})
	t.Run("a slot is moving", func(t *testing.T) {
		m := newMovingSlot(t, cluster, false)
		s := m.replicatedStore(t, oneReplica)
		mine := m.Request(m.tag + "mine")
		if got := answerOf(s.Take(t.Context(), mine)); got != "granted" {
			t.Fatal(got)
		}
		all, free := m.questions(t, s, "")
		on := m.Cluster.BeginMove(m.tag, m.to)
		m.moveAll(t, on)
		newCommands := monitor(t, m.to)
		m.ask(t, s, append(all, question{"renew", []string{"held, -1 waiting"}, renewalTo(s, mine)})...)
		commands := newCommands()
		if asked, waits := len(named(commands, "ASKING")), len(named(commands, "WAIT")); asked < len(all)/2+1 || waits < asked {
			t.Errorf("%d times ASKING, %d times WAIT", asked, waits)
		}
		on.Finish()
		m.mustHold(t, append(free, mine))
	})
	t.Run("too few replicas of the new master", func(t *testing.T) {
		m := newMovingSlot(t, cluster, false)
		s := m.replicatedStore(t, withTimeout(oneReplica, time.Second)) // the whole timeout passes
		r := m.Request(m.tag + "free")
		m.Cluster.MoveSlot(m.tag, m.to)
		m.to.RefuseReplicas(true)
		_, err := s.Take(t.Context(), r)
		var fault *store.Fault
		if !errors.As(err, &fault) || !fault.Temporary || !fault.Unknown || err.Error() != "only 0 of 1 replicas have acknowledged it" {
			t.Errorf("%v", err)
		}
		m.to.RefuseReplicas(false)
		suite.Eventually(t, "a grant with the same token is acknowledged", func() bool {
			return answerOf(s.Take(t.Context(), r)) == "granted"
		})
	})
}

// replicatedStore is movingSlot.store for a store that waits until a replica has acknowledged
// a grant.
func (m *movingSlot) replicatedStore(t *testing.T, replicas command.Replicas) *syncStore {
	t.Helper()
	s := newReplicatedStore(t, m.Client(t, storetest.SlowClusterReads), replicas)
	if got := answerOf(s.Take(t.Context(), m.Request(m.stays+"known"+m.Next()))); got != "granted" {
		t.Fatal(got)
	}
	for _, source := range []script.Script{s.scripts.Take, s.scripts.Renew} {
		for _, node := range []*redistest.Server{m.from, m.to} {
			if err := node.Client(t).ScriptLoad(t.Context(), source.Source.(string)).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	return s
}
