package redisstore

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// twoReplicas are all replicas of a master behind Sentinels. Their timeout leaves room for a
// busy machine.
var twoReplicas = command.Replicas{Count: 2, Timeout: 2 * time.Second}

// withTimeout returns the replicas with another timeout: a short one if the replicas cannot
// acknowledge, because the whole timeout passes then.
func withTimeout(r command.Replicas, timeout time.Duration) command.Replicas {
	r.Timeout = timeout
	return r
}

// newReplicatedStore returns a store that waits until replicas have acknowledged a grant.
func newReplicatedStore(t *testing.T, rdb redis.UniversalClient, replicas command.Replicas) *syncStore {
	t.Helper()
	s, err := New(rdb, "p:", storetest.Me, replicas)
	if err != nil {
		t.Fatal(err)
	}
	storetest.CloseAtEnd(t, s)
	return &syncStore{Store: s, tb: t}
}

// startReplicated starts a master with two replicas and Sentinels. Clients may use WAIT.
func startReplicated(t *testing.T) *redistest.Sentinels {
	t.Helper()
	sentinels := redistest.StartSentinel(t)
	for _, server := range sentinels.Servers() {
		server.Grant(redistest.ReplicaRights)
	}
	return sentinels
}

// A replicatedCase is a transition on servers with replicas, with the texts of a transitionRow. waits
// says that replicas have to acknowledge it.
type replicatedCase struct {
	name   string
	waits  bool
	before string
	do     transition
	want   string
}

var replicatedCases = []replicatedCase{
	{"take", true, "", take, "granted, waiting -1"},
	{"take again", true, "A1 1h", take, "granted, waiting -1"},
	{"enqueue", true, "", enqueue, "granted"},
	{"confirm a hand-off", true, "A1 claim", enqueue, "granted"},
	{"confirm a hand-off that has a longer TTL", true, "A1 1h", enqueue, "granted"},
	{"renew", true, "A1 1h", renew, "granted"},
	{"share", true, "", asking(permit), "granted"},
	{"share with a number", true, "", asking(permit, numbers(8)), "granted"},
	{"share again", true, "shared ttl #77 | | | A1/2=ttl", asking(permit), "granted"},
	{"share again with a number", true, "shared 1h #77 | | | A1/2=1h", asking(permit, numbers(8)), "granted"},
	{"confirm a hand-off to a shared token", true, "A1/2 claim", asking(permit), "granted"},
	{"renew a shared lease", true, "shared 1h #77 | | | A1/2=1h", renewing(permit), "granted"},
	{"hand over to a ticket", true, "A1 ttl", toTicket, "freed"},
	{"hand over to a ticket again", true, "D1 claim", toTicket, "freed"},
	{"accept", true, "D1 ttl", accept, "granted"},
	{"accept again", true, "A1 1h", accept, "granted"},
	{"begin", true, "", begin(), "granted, number 1"},
	{"begin again", true, "A1 1h | | R A1 1", begin(), "granted, number 1"},
	{"commit", true, "A1 ttl | | R A1 1", finish(store.EndCommit), "freed, stored"},
	{"commit again", true, "| | D A1", finish(store.EndCommit), "stored"},
	{"seal", true, "A1 ttl | | R A1 1", finish(store.EndDone), "freed, stored"},
	{"answer", true, "| | R B1 1", resolveAs(store.ResolveAnswered, storetest.Bob1), "resolved"},
	{"answer again", true, "| | D resolved:B1", resolveAs(store.ResolveAnswered, storetest.Bob1), "resolved"},
	{"mark as done", true, "| | R B1 1", resolveAs(store.ResolveDone, storetest.Bob1), "resolved"},

	{"abort", false, "A1 ttl | | R A1 1", finish(store.EndAbort), "freed, stored"},
	{"release", false, "A1 ttl", release, "freed"},
	{"release a shared lease", false, "shared ttl #77 | | | A1/2=ttl", releasing(permit), "freed"},
	{"release and rejoin", false, "A1 ttl", rejoin, "kept"},
	{"forget", false, "| | R B1 1", resolve, "resolved"},
	{"outcome", false, "| | D B1", readOutcome(storetest.Keep), "answered B1"},
}

// run runs the transition once. If it has not failed, the test fails unless the answer is right. The
// status of a release may be unsure.
func (c *replicatedCase) run(t *testing.T, s *syncStore) error {
	t.Helper()
	got, err := c.do(t, s)
	want := outcomeOfText(c.want)
	if got.status == store.Unsure {
		got.status = want.status
	}
	if err == nil && got != want {
		t.Errorf("got %+v, want %s", got, c.want)
	}
	return err
}

// writes are the commands with which the scripts write.
var writes = []string{"SET", "PEXPIRE", "PEXPIREAT", "DEL"}
