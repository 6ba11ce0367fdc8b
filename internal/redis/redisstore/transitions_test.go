package redisstore

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

var transitions = []transitionTest{
	{
		name: "take a free key", do: take,
		first: outcome{granted: true, waiting: -1}, second: outcome{granted: true, waiting: -1},
		after: storetest.State{Value: storetest.Me1, TTL: storetest.TTL},
	},
	{
		name: "take a key with the own token: the TTL stays", do: take,
		before: storetest.State{Value: storetest.Me1, TTL: storetest.Claim},
		first:  outcome{granted: true, waiting: -1}, second: outcome{granted: true, waiting: -1},
		after: storetest.State{Value: storetest.Me1, TTL: storetest.Claim},
	},
	{
		name: "take another's key", do: take,
		before: storetest.State{Value: "other", TTL: time.Hour},
		first:  outcome{holder: "other"}, second: outcome{holder: "other"},
		after: storetest.State{Value: "other", TTL: time.Hour},
	},
	{
		name: "take a free key with a queue", do: take, listening: []string{storetest.Bob},
		before: storetest.State{Queue: []string{storetest.Bob1}},
		first:  outcome{granted: true, waiting: -1}, second: outcome{granted: true, waiting: -1},
		after: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1}},
	},

	{
		name: "enqueue for a free key", do: enqueue,
		first: outcome{granted: true}, second: outcome{granted: true},
		after: storetest.State{Value: storetest.Me1, TTL: storetest.TTL},
	},
	{
		name: "confirm a hand-off: the full TTL", do: enqueue, listening: []string{storetest.Bob},
		before: storetest.State{Value: storetest.Me1, TTL: storetest.Claim, Queue: []string{storetest.Bob1}},
		first:  outcome{granted: true, waiting: 1}, second: outcome{granted: true, waiting: 1},
		after: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1}},
	},
	{
		name: "confirm a hand-off: never a shorter TTL", do: enqueue,
		before: storetest.State{Value: storetest.Me1, TTL: time.Hour},
		first:  outcome{granted: true}, second: outcome{granted: true},
		after: storetest.State{Value: storetest.Me1, TTL: time.Hour},
	},
	{
		name: "confirm a late take: leaves the queue", do: enqueue,
		before: storetest.State{Value: storetest.Me1, TTL: storetest.Claim, Queue: []string{storetest.Bob1, storetest.Me1, storetest.Eve1}},
		first:  outcome{granted: true, waiting: 2}, second: outcome{granted: true, waiting: 2},
		after: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1, storetest.Eve1}},
	},
	{
		name: "enqueue behind a foreign client", do: enqueue,
		before: storetest.State{Value: "other", TTL: time.Hour},
		first:  outcome{holder: "other", remaining: time.Hour, foreign: true},
		second: outcome{holder: "other", remaining: time.Hour, foreign: true},
		after:  storetest.State{Value: "other", TTL: time.Hour, Queue: []string{storetest.Me1}},
	},
	{
		name: "enqueue behind a foreign client with a similar token", do: enqueue, listening: []string{storetest.Bob},
		before: storetest.State{Value: storetest.Bob + "b:1", TTL: time.Hour},
		first:  outcome{holder: storetest.Bob + "b:1", remaining: time.Hour, foreign: true},
		second: outcome{holder: storetest.Bob + "b:1", remaining: time.Hour, foreign: true},
		after:  storetest.State{Value: storetest.Bob + "b:1", TTL: time.Hour, Queue: []string{storetest.Me1}},
	},
	{
		name: "enqueue behind a key without a TTL", do: enqueue,
		before: storetest.State{Value: "other"},
		first:  outcome{holder: "other", remaining: -1, foreign: true},
		second: outcome{holder: "other", remaining: -1, foreign: true},
		after:  storetest.State{Value: "other", Queue: []string{storetest.Me1}},
	},
	{
		name: "enqueue behind another process: the first waiter sends a hint", do: enqueue, listening: []string{storetest.Bob},
		before: storetest.State{Value: storetest.Bob1, TTL: time.Hour},
		first:  outcome{holder: storetest.Bob1, remaining: time.Hour}, second: outcome{holder: storetest.Bob1, remaining: time.Hour},
		after: storetest.State{Value: storetest.Bob1, TTL: time.Hour, Queue: []string{storetest.Me1}},
		hints: []string{storetest.Bob1 + " p:k", storetest.Bob1 + " p:k"},
	},
	{
		name: "enqueue behind another process that does not listen", do: enqueue,
		before: storetest.State{Value: storetest.Bob1, TTL: time.Hour},
		first:  outcome{holder: storetest.Bob1, remaining: time.Hour}, second: outcome{holder: storetest.Bob1, remaining: time.Hour},
		after: storetest.State{Value: storetest.Bob1, TTL: time.Hour, Queue: []string{storetest.Me1}},
	},
	{
		name: "enqueue as the second waiter: no hint", do: enqueue, listening: []string{storetest.Bob, storetest.Eve},
		before: storetest.State{Value: storetest.Bob1, TTL: time.Hour, Queue: []string{storetest.Eve1}},
		first:  outcome{holder: storetest.Bob1, remaining: time.Hour}, second: outcome{holder: storetest.Bob1, remaining: time.Hour},
		after: storetest.State{Value: storetest.Bob1, TTL: time.Hour, Queue: []string{storetest.Eve1, storetest.Me1}},
	},
	{
		name: "enqueue as the second waiter behind a foreign client: the first one polls", do: enqueue,
		before: storetest.State{Value: "other", TTL: time.Hour, Queue: []string{storetest.Eve1}},
		first:  outcome{holder: "other", remaining: time.Hour}, second: outcome{holder: "other", remaining: time.Hour},
		after: storetest.State{Value: "other", TTL: time.Hour, Queue: []string{storetest.Eve1, storetest.Me1}},
	},
	{
		name: "enqueue behind another token of the own process: not granted", do: enqueue, listening: []string{storetest.Me},
		before: storetest.State{Value: storetest.Me2, TTL: time.Hour},
		first:  outcome{holder: storetest.Me2, remaining: time.Hour}, second: outcome{holder: storetest.Me2, remaining: time.Hour},
		after: storetest.State{Value: storetest.Me2, TTL: time.Hour, Queue: []string{storetest.Me1}},
		hints: []string{storetest.Me2 + " p:k", storetest.Me2 + " p:k"},
	},
	{
		name: "enqueue for a free key behind a waiter that listens: the waiter gets it", do: enqueue, listening: []string{storetest.Bob},
		before: storetest.State{Queue: []string{storetest.Bob1}},
		first:  outcome{holder: storetest.Bob1, remaining: storetest.Claim}, second: outcome{holder: storetest.Bob1, remaining: storetest.Claim},
		after: storetest.State{Value: storetest.Bob1, TTL: storetest.Claim, Queue: []string{storetest.Me1}},
		hints: []string{storetest.Bob1 + " p:k", storetest.Bob1 + " p:k"},
	},
	{
		name: "enqueue for a free key behind a waiter that listens: the place is kept", do: enqueue, listening: []string{storetest.Bob},
		before: storetest.State{Queue: []string{storetest.Bob1, storetest.Me1, storetest.Eve1}},
		first:  outcome{holder: storetest.Bob1, remaining: storetest.Claim}, second: outcome{holder: storetest.Bob1, remaining: storetest.Claim},
		after: storetest.State{Value: storetest.Bob1, TTL: storetest.Claim, Queue: []string{storetest.Me1, storetest.Eve1}},
		hints: []string{storetest.Bob1 + " p:k", storetest.Bob1 + " p:k"},
	},
	{
		name: "enqueue for a free key behind waiters that do not listen", do: enqueue, listening: []string{storetest.Eve},
		before: storetest.State{Queue: []string{storetest.Bob1, "junk", storetest.Bob2, storetest.Me1, storetest.Eve1}},
		first:  outcome{granted: true, waiting: 1}, second: outcome{granted: true, waiting: 1},
		after: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Eve1}},
	},
	{
		name: "enqueue for a free key behind only waiters that do not listen", do: enqueue,
		before: storetest.State{Queue: []string{storetest.Bob1, storetest.Bob2}},
		first:  outcome{granted: true}, second: outcome{granted: true},
		after: storetest.State{Value: storetest.Me1, TTL: storetest.TTL},
	},
	{
		name: "enqueue in mode B: a waiter that cannot be counted gets the key", do: inModeB(enqueue),
		before: storetest.State{Queue: []string{storetest.Bob1}},
		first:  outcome{holder: storetest.Bob1, remaining: storetest.Claim}, second: outcome{holder: storetest.Bob1, remaining: storetest.Claim},
		after: storetest.State{Value: storetest.Bob1, TTL: storetest.Claim, Queue: []string{storetest.Me1}},
	},
	{
		name: "enqueue raises the TTL of the queue", do: enqueue,
		before: storetest.State{Value: "other", TTL: time.Hour, Queue: []string{storetest.Me1}, QueueTTL: 20 * time.Second},
		first:  outcome{holder: "other", remaining: time.Hour, foreign: true},
		second: outcome{holder: "other", remaining: time.Hour, foreign: true},
		after:  storetest.State{Value: "other", TTL: time.Hour, Queue: []string{storetest.Me1}},
	},
	{
		name: "enqueue never shortens the TTL of the queue", do: enqueue,
		before: storetest.State{Value: "other", TTL: time.Hour, Queue: []string{storetest.Eve1}, QueueTTL: time.Hour},
		first:  outcome{holder: "other", remaining: time.Hour}, second: outcome{holder: "other", remaining: time.Hour},
		after: storetest.State{Value: "other", TTL: time.Hour, Queue: []string{storetest.Eve1, storetest.Me1}, QueueTTL: time.Hour},
	},

	{
		name: "enqueue without joining, for a free key", do: nowait,
		first: outcome{granted: true}, second: outcome{granted: true},
		after: storetest.State{Value: storetest.Me1, TTL: storetest.TTL},
	},
	{
		name: "enqueue without joining, for a held key", do: nowait, listening: []string{storetest.Bob},
		before: storetest.State{Value: storetest.Bob1, TTL: time.Hour},
		first:  outcome{holder: storetest.Bob1, remaining: time.Hour}, second: outcome{holder: storetest.Bob1, remaining: time.Hour},
		after: storetest.State{Value: storetest.Bob1, TTL: time.Hour},
	},
	{
		name: "enqueue without joining, behind a waiter that listens: the waiter gets it", do: nowait, listening: []string{storetest.Bob},
		before: storetest.State{Queue: []string{storetest.Bob1, storetest.Eve1}},
		first:  outcome{holder: storetest.Bob1, remaining: storetest.Claim}, second: outcome{holder: storetest.Bob1, remaining: storetest.Claim},
		after: storetest.State{Value: storetest.Bob1, TTL: storetest.Claim, Queue: []string{storetest.Eve1}},
		hints: []string{storetest.Bob1 + " p:k"},
	},
	{
		name: "enqueue without joining, behind waiters that do not listen", do: nowait,
		before: storetest.State{Queue: []string{storetest.Bob1, storetest.Eve1}},
		first:  outcome{granted: true}, second: outcome{granted: true},
		after: storetest.State{Value: storetest.Me1, TTL: storetest.TTL},
	},

	{
		name: "renew the own key", do: renew,
		before: storetest.State{Value: storetest.Me1, TTL: storetest.Claim, Queue: []string{storetest.Bob1, storetest.Eve1}},
		first:  outcome{granted: true, waiting: 2}, second: outcome{granted: true, waiting: 2},
		after: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1, storetest.Eve1}},
	},
	{
		name: "renew the own key: never a shorter TTL", do: renew,
		before: storetest.State{Value: storetest.Me1, TTL: time.Hour},
		first:  outcome{granted: true}, second: outcome{granted: true},
		after: storetest.State{Value: storetest.Me1, TTL: time.Hour},
	},
	{
		name: "renew another's key", do: renew,
		before: storetest.State{Value: storetest.Me2, TTL: time.Hour},
		after:  storetest.State{Value: storetest.Me2, TTL: time.Hour},
	},
	{name: "renew no key: not created", do: renew},

	{
		name: "release the own key", do: release,
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL},
		first:  outcome{status: store.Freed}, second: outcome{status: store.NotHeld},
	},
	{
		name: "release another's key", do: release,
		before: storetest.State{Value: storetest.Me2, TTL: storetest.TTL},
		after:  storetest.State{Value: storetest.Me2, TTL: storetest.TTL},
	},
	{name: "release no key", do: release},
	{
		name: "release to the first waiter that listens", do: release, listening: []string{storetest.Eve},
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1, "junk", storetest.Eve1, storetest.Bob2}},
		first:  outcome{status: store.Handed}, second: outcome{status: store.NotHeld},
		after: storetest.State{Value: storetest.Eve1, TTL: storetest.Claim, Queue: []string{storetest.Bob2}},
		hints: []string{storetest.Eve1 + " p:k"},
	},
	{
		name: "release while no waiter listens", do: release,
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1, storetest.Eve1}},
		first:  outcome{status: store.Freed}, second: outcome{status: store.NotHeld},
	},
	{
		name: "release in mode B: to a waiter that cannot be counted", do: inModeB(release),
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1, storetest.Eve1}},
		first:  outcome{status: store.Handed}, second: outcome{status: store.NotHeld},
		after: storetest.State{Value: storetest.Bob1, TTL: storetest.Claim, Queue: []string{storetest.Eve1}},
	},
	{
		name: "leave the queue", do: release, listening: []string{storetest.Bob, storetest.Eve},
		before: storetest.State{Value: storetest.Bob1, TTL: storetest.TTL, Queue: []string{storetest.Eve1, storetest.Me1, storetest.Bob2}},
		after:  storetest.State{Value: storetest.Bob1, TTL: storetest.TTL, Queue: []string{storetest.Eve1, storetest.Bob2}},
	},
	{
		name: "leave with a grant: it is passed on", do: release, listening: []string{storetest.Eve},
		before: storetest.State{Value: storetest.Me1, TTL: storetest.Claim, Queue: []string{storetest.Eve1}},
		first:  outcome{status: store.Handed}, second: outcome{status: store.NotHeld},
		after: storetest.State{Value: storetest.Eve1, TTL: storetest.Claim},
		hints: []string{storetest.Eve1 + " p:k"},
	},
	{
		name: "release after a late take: leaves the queue, too", do: release, listening: []string{storetest.Me},
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Me1}},
		first:  outcome{status: store.Freed}, second: outcome{status: store.NotHeld},
	},
	{
		name: "rejoin behind another waiter", do: rejoin, listening: []string{storetest.Bob},
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1, storetest.Eve1}},
		first:  outcome{status: store.Handed}, second: outcome{status: store.NotHeld},
		after: storetest.State{Value: storetest.Bob1, TTL: storetest.Claim, Queue: []string{storetest.Eve1, storetest.Me2}},
		hints: []string{storetest.Bob1 + " p:k"},
	},
	{
		name: "rejoin alone: kept", do: rejoin,
		before: storetest.State{Value: storetest.Me1, TTL: storetest.Claim},
		first:  outcome{status: store.Kept}, second: outcome{status: store.NotHeld},
		after: storetest.State{Value: storetest.Me2, TTL: storetest.TTL},
	},
	{
		name: "rejoin behind waiters that do not listen: kept", do: rejoin,
		before: storetest.State{Value: storetest.Me1, TTL: storetest.Claim, Queue: []string{storetest.Bob1, storetest.Eve1}},
		first:  outcome{status: store.Kept}, second: outcome{status: store.NotHeld},
		after: storetest.State{Value: storetest.Me2, TTL: storetest.TTL},
	},
	{
		name: "rejoin without the key: does not rejoin", do: rejoin,
		before: storetest.State{Value: storetest.Bob1, TTL: storetest.TTL, Queue: []string{storetest.Me1, storetest.Eve1}},
		after:  storetest.State{Value: storetest.Bob1, TTL: storetest.TTL, Queue: []string{storetest.Eve1}},
	},
}

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
