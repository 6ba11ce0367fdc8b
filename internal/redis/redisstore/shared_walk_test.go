package redisstore

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A walk sends random commands of several processes.
type walk struct {
	rdb    redis.UniversalClient
	store  *syncStore
	rand   *rand.Rand
	conns  map[string]*redis.PubSub // of the processes that listen
	kinds  []string                 // the suffixes of the names of new tokens
	issued int
}

// A walkState is the state of the lock, with the names of tokens.
type walkState struct {
	marked bool
	alone  string // the token that has K alone, or ""
	leases []string
	queue  []string
}

// holds reports whether the token has a lease.
func (s *walkState) holds(name string) bool {
	return s.alone == name || slices.Contains(s.leases, name)
}

// names returns the names of all tokens.
func (s *walkState) names() []string {
	all := slices.Concat(s.queue, s.leases)
	if s.alone != "" {
		all = append(all, s.alone)
	}
	slices.Sort(all)
	return all
}

// state returns the state of the server.
func (w *walk) state(t *testing.T) (s walkState) {
	t.Helper()
	text, inQueue := strings.Fields(string(sharedStateOf(t, w.rdb))), 0
	s.marked = text[0] == "shared"
	if !s.marked && text[0] != "-" {
		s.alone = text[0]
	}
	for _, field := range text {
		name, left, isLease := strings.Cut(field, "=")
		switch {
		case field == "|":
			inQueue++
		case inQueue == 1:
			s.queue = append(s.queue, field)
		case isLease && s.marked && !strings.HasPrefix(left, "-"):
			s.leases = append(s.leases, name)
		}
	}
	return s
}

// need returns how many leases may be out at most, this one included.
func need(name string) int {
	switch limit, _, _ := parseName(name); limit {
	case store.Exclusive:
		return 1
	case store.Unlimited:
		return 1 << 30
	default:
		return int(limit)
	}
}

var walkProcesses = [...]string{"A", "B", "C", "D", "E"}

func (w *walk) newName() string {
	w.issued++
	return fmt.Sprint(walkProcesses[w.rand.IntN(len(walkProcesses))], w.issued, w.kinds[w.rand.IntN(len(w.kinds))])
}

// toggle makes a process listen, or not, and waits until the server counts it or no longer does.
func (w *walk) toggle(t *testing.T, process string) {
	t.Helper()
	channel := "p:" + processOf(process)
	if conn := w.conns[process]; conn != nil {
		_ = conn.Close()
		delete(w.conns, process)
		for w.rdb.PubSubNumSub(t.Context(), channel).Val()[channel] > 0 {
			runtime.Gosched()
		}
		return
	}
	w.conns[process] = w.rdb.Subscribe(t.Context(), channel)
	if _, err := w.conns[process].Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// expire ends a lease as its TTL would.
func (w *walk) expire(t *testing.T, s *walkState) {
	t.Helper()
	if s.alone != "" || len(s.leases) == 1 {
		w.rdb.Del(t.Context(), storetest.LockName, storetest.SharedName)
	} else if len(s.leases) > 1 {
		z := redis.Z{Score: serverNow(t, w.rdb) - 60_000, Member: tokenOf(s.leases[w.rand.IntN(len(s.leases))])}
		w.rdb.ZAdd(t.Context(), storetest.SharedName, z)
	}
}

// step sends a command, and returns what it was, the token that it is for, and the answer. No
// answer means that the environment has changed something.
func (w *walk) step(t *testing.T, before *walkState) (what, own, answer string) {
	t.Helper()
	known := func() string {
		if all := before.names(); len(all) > 0 && w.rand.IntN(10) > 0 {
			return all[w.rand.IntN(len(all))]
		}
		return w.newName()
	}
	w.store.noWaiters = w.rand.IntN(2) == 0
	switch n := w.rand.IntN(100); {
	case n < 30:
		own = w.newName()
		return "ask", own, asks(own)(t, w.store)
	case n < 50:
		own = known()
		return "ask", own, asks(own)(t, w.store)
	case n < 56:
		own = w.newName()
		how := []string{"try", "briefly"}[w.rand.IntN(2)]
		return how, own, asks(own, how)(t, w.store)
	case n < 82:
		own = known()
		return "release", own, releases(own, "")(t, w.store)
	case n < 90:
		own = known()
		again := own[:1] + w.newName()[1:]
		return "release " + own + " and rejoin", again, releases(own, again)(t, w.store)
	case n < 93:
		w.expire(t, before)
	case n < 96:
		w.toggle(t, walkProcesses[w.rand.IntN(len(walkProcesses))])
	default:
		w.damage(t)
	}
	return "", "", ""
}

// damage changes the keys as an operator or another client might.
func (w *walk) damage(t *testing.T) {
	t.Helper()
	switch w.rand.IntN(5) {
	case 0:
		w.rdb.Del(t.Context(), storetest.LockName)
	case 1:
		w.rdb.Del(t.Context(), storetest.SharedName)
	case 2:
		w.rdb.Del(t.Context(), storetest.QueueName)
	case 3: // a client of the classic recipe has overwritten the lock
		w.rdb.Set(t.Context(), storetest.LockName, tokenOf("B1"), time.Hour)
	case 4:
		w.rdb.Del(t.Context(), storetest.LockName, storetest.QueueName, storetest.SharedName, storetest.FenceName)
	}
}

// wrong returns what is wrong with the state after a command for a token, or "".
func (w *walk) wrong(what, own, answer string, before, after *walkState) string {
	granted, first := strings.HasPrefix(answer, "granted") || answer == "kept", slices.Concat(after.queue, []string{""})[0]
	// What is refused briefly leaves room that a lease without a release has left: the queue waits for another command.
	isRefused := what == "briefly" && !granted
	asked := what == "ask" || what == "try" || what == "briefly"
	isVoid := before.marked && len(before.leases) == 0 // a marker without a set: only an ask removes it
	came := slices.DeleteFunc(after.names(), func(name string) bool { return !after.holds(name) || before.holds(name) })
	order := append(slices.Clone(before.queue), own)
	slices.SortFunc(came, func(a, b string) int { return slices.Index(order, a) - slices.Index(order, b) })
	stayed := len(after.leases) - len(came)
	switch {
	case after.marked != (len(after.leases) > 0) && (asked || !isVoid):
		return "a marker without leases, or leases without a marker"
	case what != "release" && granted != after.holds(own):
		return "the answer does not say whether the token has a lease"
	case what == "release" && (after.holds(own) || slices.Contains(after.queue, own)):
		return "the token is not gone"
	case len(slices.Compact(after.names())) != len(after.names()):
		return "a token is there twice"
	case first != "" && after.alone == "" && (after.marked || asked) && !isRefused && len(after.leases) < need(first):
		return "the first of the queue has room"
	}
	for i, name := range came {
		// Exception: if a shared token opens a phase, all shared tokens that have room go with it.
		opens := after.marked && (stayed == 0 || before.alone == own)
		isPassed := func(other string) bool {
			return slices.Contains(after.queue, other) && other != own && (!opens || need(other) != 1)
		}
		switch {
		case after.marked && stayed+i >= need(name):
			return name + " is above its limit"
		case name != own && w.conns[name[:1]] == nil:
			return name + " does not listen"
		case slices.ContainsFunc(order[:slices.Index(order, name)], isPassed):
			return name + " has passed another token"
		}
	}
	remain := func(queue, in []string) []string {
		return slices.DeleteFunc(slices.Clone(queue), func(name string) bool { return !slices.Contains(in, name) })
	}
	if !slices.Equal(remain(before.queue, after.queue), remain(after.queue, before.queue)) {
		return "the order of the queue has changed"
	}
	return ""
}

// After each of many random commands, there are no more leases than their limits allow, the queue is
// served in turn, and no room is left unused. shared.pml proves the same of its scripts, in each order.
func TestRandomCommandsKeepSharedLeasesRight(t *testing.T) {
	t.Parallel()
	storetest.OnEachServer(t, func(t *testing.T, rdb redis.UniversalClient) {
		seed := uint64(time.Now().UnixNano())
		w := &walk{rdb: rdb, store: newStore(t, rdb), rand: rand.New(rand.NewPCG(seed, 1)), conns: make(map[string]*redis.PubSub)}
		defer func() {
			for _, conn := range w.conns {
				_ = conn.Close()
			}
		}()
		w.store.setMode("P")
		for _, process := range walkProcesses {
			w.toggle(t, process)
		}
		kinds := [...][]string{{"", "*"}, {"/3"}, {"/3", "/5"}, {"", "*", "/2"}, {"", "*", "/2", "/4"}}
		steps, grants := suite.Size(500, 4_000), 0
		for i := range steps {
			if i%100 == 0 {
				w.kinds = kinds[w.rand.IntN(len(kinds))]
			}
			before := w.state(t)
			what, own, answer := w.step(t, &before)
			if answer == "" {
				continue
			}
			after := w.state(t)
			if wrong := w.wrong(what, own, answer, &before, &after); wrong != "" {
				t.Fatalf("seed %d, step %d, %s %s: %s: %s\nbefore %+v\nafter  %+v", seed, i, what, own, answer, wrong, before, after)
			}
			if after.holds(own) && !before.holds(own) {
				grants++
			}
			for len(after.queue) > 12 { // so that tokens are granted, too
				releases(after.queue[0], "")(t, w.store)
				after.queue = after.queue[1:]
			}
		}
		if grants < steps/20 {
			t.Errorf("only %d leases in %d steps", grants, steps)
		}
	}, redistest.OnCluster, redistest.OnSentinels)
}
