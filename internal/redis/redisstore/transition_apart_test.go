package redisstore

import (
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

func apart(r *storetest.AnyRequest) { r.Apart = true }

func fresh(r *storetest.AnyRequest) { r.Apart, r.Fresh = true, true }

// The transitions of a token that is apart.
var apartTransitions = testsOf([]transitionRow{
	{name: "apart, for a free key", do: asking(apart), first: "granted", after: "A1 ttl"},
	{name: "apart, confirms a hand-off: the full TTL", do: asking(apart), before: "A1 claim | B1", first: "granted, waiting 1", after: "A1 ttl | B1"},
	{name: "apart, confirms a hand-off: never a shorter TTL", do: asking(apart), before: "A1 1h | B1", first: "granted, waiting 1", after: "="},
	{name: "apart, confirms a key without a TTL", do: asking(apart), before: "A1 forever | B1", first: "granted, waiting 1", after: "A1 ttl | B1"},
	{name: "apart, in the queue: the place is kept", do: asking(apart), before: "other! 1h | A1 C1 @20s", first: "by other!, left 1h, foreign", after: "other! 1h | A1 C1"},
	{name: "apart, not in the queue any more: joins once", do: asking(apart), listening: "B", before: "B1 1h | C1", first: "by B1, left 1h", after: "B1 1h | C1 A1"},
	{name: "apart, for a free key behind a waiter that listens", do: asking(apart), listening: "B", before: "| B1 A1 C1", first: "by B1, left claim", after: "B1 claim | A1 C1", hints: "B1 B1"},
	{name: "apart, for a free key behind waiters that do not listen", do: asking(apart), listening: "C", before: "| B1 A1 C1", first: "granted, waiting 1", after: "A1 ttl | C1"},

	{name: "confirm after a late send of a fresh one: leaves the queue", do: enqueue, before: "A1 claim | B1 A1 C1 A1", first: "granted, waiting 2", after: "A1 ttl | B1 C1"},
	{name: "enqueue for a free key after a late send of a fresh one: leaves the queue", do: enqueue, before: "| A1 A1 B1", first: "granted, waiting 1", after: "A1 ttl | B1"},

	{name: "release apart: frees", do: releasing(apart), before: "A1 ttl", first: "freed", second: "nothing"},
	{name: "release apart: no key", do: releasing(apart), first: "nothing"},
	{name: "release apart: to the first waiter that listens", do: releasing(apart), listening: "C", before: "A1 ttl | B1 junk! C1 B2", first: "handed", second: "nothing", after: "C1 claim | B2", hints: "C1"},
	{name: "release apart: no waiter listens", do: releasing(apart), before: "A1 ttl | B1 C1", first: "freed", second: "nothing"},
	{name: "release apart in mode B: to a waiter that cannot be counted", do: inModeB(releasing(apart)), before: "A1 ttl | B1 C1", first: "handed", second: "nothing", after: "B1 claim | C1"},
	{name: "release apart after the loss: leaves the queue", do: releasing(apart), listening: "B C", before: "B1 ttl | C1 A1 B2 A1", first: "nothing", after: "B1 ttl | C1 B2"},
	{name: "rejoin apart behind another waiter", do: releasing(rejoins, apart), listening: "B", before: "A1 ttl | B1 C1", first: "handed", second: "nothing", after: "B1 claim | C1 A2", hints: "B1"},
	{name: "rejoin apart, alone: kept", do: releasing(rejoins, apart), before: "A1 claim", first: "kept", second: "nothing", after: "A2 ttl"},
	{name: "rejoin apart behind waiters that do not listen: kept", do: releasing(rejoins, apart), before: "A1 claim | B1 C1", first: "kept", second: "nothing", after: "A2 ttl"},
	{name: "rejoin apart without the key: does not rejoin", do: releasing(rejoins, apart), before: "B1 ttl | A1 C1", first: "nothing", after: "B1 ttl | C1"},
})

// The transitions of a token that is fresh. The second run is a first send that the network
// delivers late.
var freshTransitions = testsOf([]transitionRow{
	{name: "fresh, for a free key", do: asking(fresh), first: "granted", after: "A1 ttl"},
	{name: "fresh, as the first waiter: a hint", do: asking(fresh), listening: "B", before: "B1 1h", first: "by B1, left 1h", after: "B1 1h | A1 A1", hints: "B1"},
	{name: "fresh, as the first waiter behind a foreign client", do: asking(fresh), before: "other! 1h", first: "by other!, left 1h, foreign", second: "by other!, left 1h", after: "other! 1h | A1 A1"},
	{name: "fresh, as the second waiter", do: asking(fresh), listening: "B", before: "B1 1h | C1 @20s", first: "by B1, left 1h", after: "B1 1h | C1 A1 A1"},
	{name: "fresh, never shortens the TTL of the queue", do: asking(fresh), before: "B1 1h | C1 @1h", first: "by B1, left 1h", after: "B1 1h | C1 A1 A1 @1h"},
	{name: "fresh, for a free key behind a waiter that listens", do: asking(fresh), listening: "B", before: "| B1", first: "by B1, left claim", after: "B1 claim | A1 A1", hints: "B1"},
})

// A hand-off has three commands: the waiter joins, the holder releases, and the waiter confirms. It
// costs the same behind any number of tokens: no script looks for a token in the queue.
func TestCommandsInsideScriptsOfAHandOff(t *testing.T) {
	t.Parallel()
	rdb := redistest.Reuse(t).Client(t)
	s := newStore(t, rdb)
	step := func(want string, do transition, answer string) {
		t.Helper()
		if err := rdb.ConfigResetStat(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		got := do.run(t, s)
		if got.round(outcomeOfText(answer)); got != outcomeOfText(answer) {
			t.Errorf("%+v, want %s", got, answer)
		}
		if got := commandsInScripts(t, rdb); got != want {
			t.Errorf("commands inside the script: %s, want %s", got, want)
		}
	}
	for _, do := range []transition{asking(fresh), asking(apart), releasing(apart)} { // the server loads the scripts
		do.run(t, s)
	}
	storetest.State{Value: storetest.Bob1, TTL: storetest.TTL, Queue: strings.Fields(strings.Repeat(storetest.Eve1+" ", 1000))}.Put(t, rdb)
	step("get 1, pexpire 1, pttl 1, rpush 1", asking(fresh), "by B1, left ttl")

	log := subscribeAs(t, rdb, storetest.Bob)
	storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: strings.Fields(strings.Repeat(storetest.Bob1+" ", 1000))}.Put(t, rdb)
	step("get 1, lpop 1, publish 1, set 1", releasing(apart), "handed")
	log.end(t, rdb)

	storetest.State{Value: storetest.Me1, TTL: storetest.Claim, Queue: strings.Fields(strings.Repeat(storetest.Eve1+" ", 1000))}.Put(t, rdb)
	step("get 1, llen 1, pexpire 1", asking(apart), "granted, waiting 1000")
}

// commandsInScripts returns which commands the scripts have run since the statistics were reset.
func commandsInScripts(t *testing.T, rdb *redis.Client) string {
	t.Helper()
	info, err := rdb.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	var counts []string
	for name, value := range command.InfoFields(info) {
		calls, _, _ := strings.Cut(strings.TrimPrefix(value, "calls="), ",")
		if name = strings.TrimPrefix(name, "cmdstat_"); name != "evalsha" && !strings.HasPrefix(name, "config") && name != "info" {
			counts = append(counts, name+" "+calls)
		}
	}
	slices.Sort(counts)
	return strings.Join(counts, ", ")
}
