package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/script"
	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// one is the replica of a master of a cluster of redistest. It has longer than a busy
// machine takes.
var one = command.Replicas{Count: 1, Timeout: 5 * time.Second}

// startDurableCluster runs a cluster. Who tests it may use WAIT.
func startDurableCluster(t *testing.T) *redistest.Cluster {
	t.Helper()
	cluster := redistest.StartCluster(t)
	for _, node := range cluster.Nodes() {
		node.Grant(redistest.ReplicaRights)
	}
	return cluster
}

// wantAcknowledged fails the test unless the server was sent so many scripts on one
// connection, and asked for its replicas there.
func wantAcknowledged(t *testing.T, all []ran, scripts int) {
	t.Helper()
	sent, waits := named(all, "EVALSHA"), named(all, "WAIT")
	if len(sent) != scripts || len(waits) != 1 || slices.ContainsFunc(sent, func(r ran) bool { return r.from != waits[0].from }) {
		t.Errorf("%d scripts on one connection, and one WAIT behind them, are wanted: %v", scripts, all)
	}
}

// Commands that leave together are asked for at each of their masters.
func TestABatchOfSeveralMastersIsAcknowledgedByEach(t *testing.T) {
	t.Parallel()
	cluster := startDurableCluster(t)
	r := storetest.NewClusterProxies(t, cluster)
	var lets []func()
	for _, proxy := range r.Proxies { // the first batch waits for the slots, and the others for it
		let, _ := proxy.HoldCommand(redistest.Named("CLUSTER"))
		lets = append(lets, let)
	}
	s := newDurable(t, r.Client(t, storetest.SlowClusterReads), one)
	tags, heard := storetest.TagsOf(t, cluster), make(map[*redistest.Server]func() []ran)
	for master := range tags {
		if err := master.Client(t).ScriptLoad(t.Context(), s.scripts.Take.Source.(string)).Err(); err != nil {
			t.Fatal(err)
		}
		heard[master] = monitor(t, master)
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
	for _, let := range lets {
		let()
	}
	for range 10 {
		if got := <-answers; got != "granted" {
			t.Errorf("got %q", got)
		}
	}
	for master, tag := range tags {
		all := heard[master]()
		if tag == first { // the first batch of all
			end := slices.IndexFunc(all, func(r ran) bool { return r.name == "WAIT" }) + 1
			wantAcknowledged(t, all[:end], 1)
			all = all[end:]
		}
		if laneWidth() >= 10 {
			wantAcknowledged(t, all, 3)
		}
	}
}

// A command that is sent away goes where its key is, and is asked for there.
//
//faults:row 23: where replicas have to acknowledge it
func TestRedirectsWithReplicas(t *testing.T) {
	t.Parallel()
	cluster := startDurableCluster(t)
	t.Run("a slot of which the client does not know that it has moved", func(t *testing.T) {
		m := newMoving(t, cluster, false)
		first := m.Request(m.tag + "first")
		s := m.durable(t, func(o *redis.ClusterOptions) {
			before := m.slots(t)
			o.ClusterSlots = func(context.Context) ([]redis.ClusterSlot, error) {
				if m.Sent(m.from, first.Token) == 0 {
					return before, nil
				}
				return m.slots(t), nil
			}
		})
		m.Cluster.MoveSlot(m.tag, m.to)
		if got := answerOf(s.Take(t.Context(), first)); got != "granted" {
			t.Errorf("got %q", got)
		}
		if n := m.Sent(m.from, first.Token); n != 1 {
			t.Errorf("it was sent to the old master %d times", n)
		}
		all, free := m.questions(t, s, "")
		m.put(t, s, all...)
		m.have(t, append(free, first))
	})
	for name, together := range map[string]bool{"alone": false, "in a batch": true} {
		t.Run("a slot that has moved, "+name, func(t *testing.T) {
			m := newMoving(t, cluster, together)
			s := m.durable(t)
			m.Cluster.MoveSlot(m.tag, m.to)
			all, free := m.questions(t, s, "")
			m.put(t, s, all...)
			m.have(t, free)
		})
		t.Run("a slot on its way, "+name, func(t *testing.T) {
			m := newMoving(t, cluster, together)
			s := m.durable(t)
			mine := m.Request(m.tag + "mine")
			if got := answerOf(s.Take(t.Context(), mine)); got != "granted" {
				t.Fatal(got)
			}
			all, free := m.questions(t, s, "")
			on := m.Cluster.BeginMove(m.tag, m.to)
			m.moveAll(t, on)
			heard := monitor(t, m.to)
			m.put(t, s, append(all, question{"renew", []string{"held, -1 in line"}, func(done func(string)) {
				s.Store.Renew(mine.Renew(), func(got store.Renewal, err error) { done(renewalOf(got, err)) })
			}})...)
			ran := heard()
			if asked, waits := len(named(ran, "ASKING")), len(named(ran, "WAIT")); asked < len(all)/2+1 || waits == 0 || !together && waits < asked {
				t.Errorf("asking %d times, and %d times for replicas", asked, waits)
			}
			on.Finish()
			m.have(t, append(free, mine))
		})
	}
	t.Run("too few replicas where it was sent", func(t *testing.T) {
		m := newMoving(t, cluster, false)
		s := m.durableWith(t, withTimeout(one, time.Second)) // it passes in vain
		r := m.Request(m.tag + "free")
		m.Cluster.MoveSlot(m.tag, m.to)
		m.to.RefuseReplicas(true)
		_, err := s.Take(t.Context(), r)
		var fault *store.Fault
		if !errors.As(err, &fault) || !fault.Temporary || !fault.Unknown || err.Error() != "only 0 of 1 replicas have acknowledged it" {
			t.Errorf("%v", err)
		}
		m.to.RefuseReplicas(false)
		suite.Eventually(t, "it is acknowledged by the same token", func() bool {
			return answerOf(s.Take(t.Context(), r)) == "granted"
		})
	})
}

// slots returns where the slots are.
func (m *moving) slots(t *testing.T) []redis.ClusterSlot {
	t.Helper()
	slots, err := m.direct.ClusterSlots(t.Context()).Result() //nolint:staticcheck // its answer is what ClusterOptions takes
	if err != nil {
		t.Error(err)
	}
	return slots
}

// durable returns a store as that of moving.store, whose grants a replica has to
// acknowledge.
func (m *moving) durable(t *testing.T, configure ...func(*redis.ClusterOptions)) *syncStore {
	t.Helper()
	return m.durableWith(t, one, configure...)
}

func (m *moving) durableWith(t *testing.T, replicas command.Replicas, configure ...func(*redis.ClusterOptions)) *syncStore {
	t.Helper()
	s := newDurable(t, m.Client(t, append([]func(*redis.ClusterOptions){storetest.SlowClusterReads}, configure...)...), replicas)
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
