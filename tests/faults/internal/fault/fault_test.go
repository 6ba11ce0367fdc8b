package fault

import (
	"context"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/tests/faults/internal/network"
)

// A result is what was observed while a fault was injected into one server.
type result struct {
	*goroutineWorkload
	system        *System
	runs          int      // restarts of the server
	losses        int      // declared losses
	survived      []string // subscriptions that existed before and after
	keptUnusedKey bool     // whether a key that no client uses still exists
}

// evidence returns, for each fault, a function that reports whether the fault took effect.
// Some injections check that themselves.
func evidence() map[string]func(*result) bool {
	sees := func(texts ...string) func(*result) bool {
		return func(s *result) bool { return s.sawError(texts...) }
	}
	calls := func(names ...string) func(*result) bool {
		return func(s *result) bool { return slices.Equal(s.calls, names) }
	}
	restarted := func(s *result) bool { return s.runs == 1 }
	awaited := func(*result) bool { return true }
	slow := func(s *result) bool { return s.slowest >= 20*time.Millisecond }
	// A batch continues after its callers have given up: its reply may be late, or its
	// connection closed, before a read of go-redis times out.
	unanswered := func(s *result) bool { return s.slowest >= commandTimeout || s.sawError("timeout", "deadline") }
	return map[string]func(*result) bool{
		"nothing-fails":               func(s *result) bool { return s.runs == 0 && !s.sawError("refused", "reset") },
		"server-crashes":              restarted,
		"server-crashes-and-is-empty": restarted,
		"server-stands-still":         unanswered,

		"server-is-away-for-long":              restarted,
		"server-is-away-for-long-and-is-empty": restarted,

		"server-stands-still-beyond-fail-fast": unanswered,

		"all-data-is-deleted": awaited,
		"lock-is-deleted":     awaited,
		"lock-is-overwritten": awaited,
		"clock-jumps-forward": awaited,
		"clock-jumps-back":    awaited,
		"fences-are-deleted":  awaited,
		"queues-are-deleted":  awaited,

		"answers-noscript":   sees("NOSCRIPT"),
		"answers-oom":        sees("OOM"),
		"answers-readonly":   sees("READONLY"),
		"answers-masterdown": sees("MASTERDOWN"),
		"answers-noreplicas": sees("NOREPLICAS"),
		"answers-misconf":    sees("MISCONF"),
		"answers-noperm":     sees("NOPERM"),
		"answers-noauth":     sees("NOAUTH"),
		"answers-busy":       sees("BUSY"),
		"answers-loading":    restarted,
		"answers-late":       unanswered,

		"connections-are-cut":                 sees("EOF", "reset", "closed"),
		"connections-are-reset":               sees("connection reset"),
		"connections-are-refused":             sees("connection refused"),
		"subscriptions-are-cut":               func(s *result) bool { return len(s.survived) == 0 },
		"one-is-partitioned":                  unanswered,
		"one-is-partitioned-and-all-is-lost":  unanswered,
		"all-are-partitioned":                 unanswered,
		"all-are-partitioned-and-all-is-lost": unanswered,
		"commands-are-swallowed":              unanswered,
		"replies-are-swallowed":               unanswered,
		"network-is-slow":                     slow,
		"network-is-throttled":                slow,
		"packets-are-tiny":                    func(s *result) bool { return s.tornReads > 0 },

		"replies-are-lost":   sees("EOF", "closed"),
		"replies-never-come": unanswered,
		"commands-are-late":  unanswered,
		"batches-are-cut":    func(s *result) bool { return unanswered(s) || s.sawError("EOF") },

		"replies-to-renewals-are-late": sees("EOF", "closed"),

		// The injections fail if there is nothing to delete, or if no process receives a
		// hint.
		"fences-are-deleted-at-full-speed-alone":            awaited,
		"fences-are-deleted-at-full-speed-in-one-process":   awaited,
		"fences-are-deleted-at-full-speed-across-processes": awaited,
		"hints-are-forged":                    awaited,
		"hints-are-forged-and-writes-refused": sees("NOREPLICAS"),

		"process-is-killed":    calls("kill", "kill", "kill"),
		"holder-is-killed":     func(s *result) bool { return len(s.calls) >= 2 && !slices.Contains(s.calls, "stop") },
		"process-stands-still": calls("stop", "continue", "stop", "continue"),

		"holders-release-early": calls("kill", "kill"),

		"shared-leases":                awaited,
		"shared-leases-in-one-process": awaited,
		"clients-of-two-kinds":         awaited,
		"readers-never-pause":          awaited,

		"holders-of-shared-leases-are-killed": func(s *result) bool { return len(s.calls) >= 3 && !slices.Contains(s.calls, "stop") },
		"shared-leases-are-deleted":           awaited,
		"a-permit-ends-early":                 awaited,

		"storm":             awaited,
		"storm-of-refusals": awaited,
	}
}

func TestFaultsTakeEffectAndAreHealed(t *testing.T) {
	known := evidence()
	for _, f := range All() {
		if !slices.Contains(f.On, OnServer) {
			continue
		}
		bit := known[f.Name]
		if bit == nil {
			t.Errorf("no evidence is known for %s", f.Name)
			continue
		}
		delete(known, f.Name)
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			awaitTurn(t)
			s := injectOnServer(t, f)
			if !bit(s) {
				t.Errorf("it has not taken place: %d restarts, calls %v, slowest command %v, %d torn packets, subscriptions %v, errors %v",
					s.runs, s.calls, s.slowest, s.tornReads, s.survived, s.errors)
			}
			if (s.losses > 0) != f.LosesData {
				t.Errorf("%d losses were declared, Losing is %v", s.losses, f.LosesData)
			}
			if lost := []string{"server-crashes-and-is-empty", "server-is-away-for-long-and-is-empty", "all-data-is-deleted"}; s.keptUnusedKey == slices.Contains(lost, f.Name) {
				t.Errorf("an unused key is there: %v", s.keptUnusedKey)
			}
			if len(s.lowFences) > 0 && !f.LosesData {
				t.Errorf("%d fences did not rise:\n%s", len(s.lowFences), strings.Join(s.lowFences[:min(20, len(s.lowFences))], "\n"))
			}
		})
	}
	for name := range known {
		t.Errorf("there is no fault %s", name)
	}
}

// injectOnServer injects a fault into one server, and returns when the server is in its
// former state.
func injectOnServer(t *testing.T, f Fault) *result {
	t.Helper()
	const ttl = 500 * time.Millisecond
	server := redistest.Start(t, f.Args...)
	admin := server.Client(t)
	n := network.Start(t, server.Addr())
	keys := []string{"reqlock:a", "reqlock:{b}"}
	b := newGoroutineWorkload(t, n, f, ttl, keys, server.Addr())
	s := &result{goroutineWorkload: b}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	open := map[string]int{}
	s.system = &System{
		TB: t, Server: server, Admin: admin, Network: n, Workload: b,
		Random: rand.New(rand.NewPCG(seed, 0)), Keys: keys, TTL: ttl,
		Disrupt: func(name string, lost Loss) func() {
			open[name]++
			if lost != nil {
				s.losses++
			}
			return func() { open[name]-- }
		},
	}
	b.AwaitGrants(1)
	if err := admin.Set(t.Context(), "unused", "here", 0).Err(); err != nil {
		t.Fatal(err)
	}
	before, listening, run := state(t, admin), subscriptions(t, admin), runID(t, admin)
	b.resetSlowest()
	f.Inject(s.system)
	if run != runID(t, admin) {
		s.runs = 1
	}
	after := subscriptions(t, admin)
	s.survived = slices.DeleteFunc(listening, func(id string) bool { return !slices.Contains(after, id) })
	s.keptUnusedKey = admin.Get(t.Context(), "unused").Val() == "here"
	admin.Del(t.Context(), "unused")
	for name, n := range open {
		if n != 0 {
			t.Errorf("%q has not ended", name)
		}
	}
	for name, value := range state(t, admin) {
		if before[name] != value {
			t.Errorf("%s is %q, and was %q", name, value, before[name])
		}
	}
	b.end()
	s.checkHealthy(admin)
	return s
}

// state returns the state of a server that a fault must restore.
func state(t *testing.T, admin *redis.Client) map[string]string {
	t.Helper()
	all, err := admin.ConfigGet(t.Context(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	rules, err := admin.ACLList(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	// The server adds this flag when a rule is set. It changes nothing.
	all["rules"] = strings.ReplaceAll(strings.Join(rules, "\n"), "sanitize-payload ", "")
	role, err := admin.Do(t.Context(), "ROLE").Slice()
	if err != nil {
		t.Fatal(err)
	}
	all["role"], _ = role[0].(string)
	return all
}

func runID(t *testing.T, admin *redis.Client) string {
	t.Helper()
	return regexp.MustCompile(`run_id:(\w+)`).FindString(admin.Info(t.Context(), "server").Val())
}

// subscriptions returns the ids of the subscribed connections.
func subscriptions(t *testing.T, admin *redis.Client) []string {
	t.Helper()
	list := admin.Do(t.Context(), "CLIENT", "LIST", "TYPE", "pubsub").String()
	return regexp.MustCompile(`\bid=\d+`).FindAllString(list, -1)
}

// checkHealthy fails the test unless each lock can be taken on each path, and only keys of
// locks are left.
func (s *result) checkHealthy(admin *redis.Client) {
	s.Helper()
	for _, process := range s.Processes() {
		rdb := s.client(process)
		locks := core.Must(core.New(rdb, core.WithTTL(s.ttl)))
		for _, key := range s.keys {
			ctx, cancel := context.WithTimeout(s.Context(), awaitTimeout)
			err := locks.Do(ctx, strings.TrimPrefix(key, "reqlock:"), func(context.Context) error { return nil })
			cancel()
			if err != nil {
				s.Errorf("process %d cannot take %s: %v", process, key, err)
			}
		}
		if err := locks.Close(s.Context()); err != nil {
			s.Error(err)
		}
		_ = rdb.Close()
	}
	names, err := admin.Keys(s.Context(), "*").Result()
	if err != nil {
		s.Fatal(err)
	}
	for _, name := range names {
		if !strings.Contains(name, "reqlock:") {
			s.Errorf("%s is left behind", name)
		}
	}
}

func TestAllFaults(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, f := range All() {
		if f.Name == "" || strings.ContainsAny(f.Name, " /") || names[f.Name] || len(f.On) == 0 || f.Inject == nil {
			t.Errorf("%q is incomplete or duplicated", f.Name)
		}
		names[f.Name] = true
	}
	for range 3 {
		if again := All(); again[0].Name != All()[0].Name || len(again) != len(names) {
			t.Error("the order changes")
		}
	}
}
