package redisstore

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

var transitions = testsOf([]transitionRow{
	{name: "take a free key", do: take, first: "granted, waiting -1", after: "A1 ttl"},
	{name: "take a key with the own token: the TTL stays", do: take, before: "A1 claim", first: "granted, waiting -1", after: "="},
	{name: "take another's key", do: take, before: "other! 1h", first: "by other!", after: "="},
	{name: "take a free key with a queue", do: take, listening: "B", before: "| B1", first: "granted, waiting -1", after: "A1 ttl | B1"},

	{name: "enqueue for a free key", do: enqueue, first: "granted", after: "A1 ttl"},
	{name: "confirm a hand-off: the full TTL", do: enqueue, listening: "B", before: "A1 claim | B1", first: "granted, waiting 1", after: "A1 ttl | B1"},
	{name: "confirm a hand-off: never a shorter TTL", do: enqueue, before: "A1 1h", first: "granted", after: "="},
	{name: "confirm a late take: leaves the queue", do: enqueue, before: "A1 claim | B1 A1 C1", first: "granted, waiting 2", after: "A1 ttl | B1 C1"},
	{name: "enqueue behind a foreign client", do: enqueue, before: "other! 1h", first: "by other!, left 1h, foreign", after: "other! 1h | A1"},
	{name: "enqueue behind a foreign client with a similar token", do: enqueue, listening: "B", before: storetest.Bob + "b:1! 1h", first: "by " + storetest.Bob + "b:1!, left 1h, foreign", after: storetest.Bob + "b:1! 1h | A1"},
	{name: "enqueue behind a key without a TTL", do: enqueue, before: "other! forever", first: "by other!, left forever, foreign", after: "other! forever | A1"},
	{name: "enqueue behind another process: the first waiter sends a hint", do: enqueue, listening: "B", before: "B1 1h", first: "by B1, left 1h", after: "B1 1h | A1", hints: "B1 B1"},
	{name: "enqueue behind another process that does not listen", do: enqueue, before: "B1 1h", first: "by B1, left 1h", after: "B1 1h | A1"},
	{name: "enqueue as the second waiter: no hint", do: enqueue, listening: "B C", before: "B1 1h | C1", first: "by B1, left 1h", after: "B1 1h | C1 A1"},
	{name: "enqueue as the second waiter behind a foreign client: the first one polls", do: enqueue, before: "other! 1h | C1", first: "by other!, left 1h", after: "other! 1h | C1 A1"},
	{name: "enqueue behind another token of the own process: not granted", do: enqueue, listening: "A", before: "A2 1h", first: "by A2, left 1h", after: "A2 1h | A1", hints: "A2 A2"},
	{name: "enqueue for a free key behind a waiter that listens: the waiter gets it", do: enqueue, listening: "B", before: "| B1", first: "by B1, left claim", after: "B1 claim | A1", hints: "B1 B1"},
	{name: "enqueue for a free key behind a waiter that listens: the place is kept", do: enqueue, listening: "B", before: "| B1 A1 C1", first: "by B1, left claim", after: "B1 claim | A1 C1", hints: "B1 B1"},
	{name: "enqueue for a free key behind waiters that do not listen", do: enqueue, listening: "C", before: "| B1 junk! B2 A1 C1", first: "granted, waiting 1", after: "A1 ttl | C1"},
	{name: "enqueue for a free key behind only waiters that do not listen", do: enqueue, before: "| B1 B2", first: "granted", after: "A1 ttl"},
	{name: "enqueue in mode B: a waiter that cannot be counted gets the key", do: inModeB(enqueue), before: "| B1", first: "by B1, left claim", after: "B1 claim | A1"},
	{name: "enqueue raises the TTL of the queue", do: enqueue, before: "other! 1h | A1 @20s", first: "by other!, left 1h, foreign", after: "other! 1h | A1"},
	{name: "enqueue never shortens the TTL of the queue", do: enqueue, before: "other! 1h | C1 @1h", first: "by other!, left 1h", after: "other! 1h | C1 A1 @1h"},

	{name: "enqueue without joining, for a free key", do: nowait, first: "granted", after: "A1 ttl"},
	{name: "enqueue without joining, for a held key", do: nowait, listening: "B", before: "B1 1h", first: "by B1, left 1h", after: "="},
	{name: "enqueue without joining, behind a waiter that listens: the waiter gets it", do: nowait, listening: "B", before: "| B1 C1", first: "by B1, left claim", after: "B1 claim | C1", hints: "B1"},
	{name: "enqueue without joining, behind waiters that do not listen", do: nowait, before: "| B1 C1", first: "granted", after: "A1 ttl"},

	{name: "renew the own key", do: renew, before: "A1 claim | B1 C1", first: "granted, waiting 2", after: "A1 ttl | B1 C1"},
	{name: "renew the own key: never a shorter TTL", do: renew, before: "A1 1h", first: "granted", after: "="},
	{name: "renew another's key", do: renew, before: "A2 1h", first: "nothing", after: "="},
	{name: "renew no key: not created", do: renew, first: "nothing"},

	{name: "release the own key", do: release, before: "A1 ttl", first: "freed", second: "nothing"},
	{name: "release another's key", do: release, before: "A2 ttl", first: "nothing", after: "="},
	{name: "release no key", do: release, first: "nothing"},
	{name: "release to the first waiter that listens", do: release, listening: "C", before: "A1 ttl | B1 junk! C1 B2", first: "handed", second: "nothing", after: "C1 claim | B2", hints: "C1"},
	{name: "release while no waiter listens", do: release, before: "A1 ttl | B1 C1", first: "freed", second: "nothing"},
	{name: "release in mode B: to a waiter that cannot be counted", do: inModeB(release), before: "A1 ttl | B1 C1", first: "handed", second: "nothing", after: "B1 claim | C1"},
	{name: "release no key with a queue: handed off", do: release, listening: "C", before: "| B1 C1 B2", first: "nothing", after: "C1 claim | B2", hints: "C1"},
	{name: "release no key with a queue in which nobody listens", do: release, before: "| B1 A1", first: "nothing"},
	{name: "leave the queue", do: release, listening: "B C", before: "B1 ttl | C1 A1 B2", first: "nothing", after: "B1 ttl | C1 B2"},
	{name: "leave with a grant: it is passed on", do: release, listening: "C", before: "A1 claim | C1", first: "handed", second: "nothing", after: "C1 claim", hints: "C1"},
	{name: "release after a late take: leaves the queue, too", do: release, listening: "A", before: "A1 ttl | A1", first: "freed", second: "nothing"},
	{name: "rejoin behind another waiter", do: rejoin, listening: "B", before: "A1 ttl | B1 C1", first: "handed", second: "nothing", after: "B1 claim | C1 A2", hints: "B1"},
	{name: "rejoin alone: kept", do: rejoin, before: "A1 claim", first: "kept", second: "nothing", after: "A2 ttl"},
	{name: "rejoin behind waiters that do not listen: kept", do: rejoin, before: "A1 claim | B1 C1", first: "kept", second: "nothing", after: "A2 ttl"},
	{name: "rejoin without the key: does not rejoin", do: rejoin, before: "B1 ttl | A1 C1", first: "nothing", after: "B1 ttl | C1"},
})

func TestTransitions(t *testing.T) {
	t.Parallel()
	storetest.OnEachServer(t, func(t *testing.T, rdb redis.UniversalClient) {
		checkTransitions(t, rdb, newStore(t, rdb).subscriber.Mode().(string))
	})
}

// Mode S is for clusters. Its scripts also run on a server without cluster mode.
func TestTransitionsWithShardedChannels(t *testing.T) {
	t.Parallel()
	server := redistest.Reuse(t)
	server.Grant(storetest.ClusterRights()...)
	checkTransitions(t, server.Client(t), "S")
}
