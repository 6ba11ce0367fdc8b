package redisstore

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// tombstone is that of the tests.
var tombstone = tombstoneMark + storetest.Eve

// grave is the value that a Revoke leaves in place of the token with this name.
func grave(name string) string { return tombstone + ":" + nameOf(tokenOf(name)) }

// revoking returns a transition that revokes the leases of the tokens with these names.
func revoking(names ...string) transition {
	return func(t *testing.T, s *syncStore) (outcome, error) {
		t.Helper()
		r := RevokeRequest{Lock: storetest.LockName, Bound: 5 * time.Second, Tombstone: tombstone}
		for _, name := range names {
			r.Leases = append(r.Leases, nameOf(tokenOf(name)))
		}
		got, err := storetest.Await(s.tb, func(done func(int, error)) { s.Revoke(r, done) })
		return outcome{revoked: got}, err
	}
}

// freeing returns a transition that frees the lease of the token, as an operator says.
func freeing(name string, limit store.Limit) transition {
	return func(t *testing.T, s *syncStore) (outcome, error) {
		t.Helper()
		r := FreeRequest{Lock: storetest.LockName, Token: tokenOf(name), Limit: limit, Claim: storetest.Claim, Bound: 5 * time.Second}
		got, err := storetest.Await(s.tb, func(done func(store.ReleaseResult, error)) { s.Free(r, done) })
		return outcome{status: got.Status}, err
	}
}

// Each transition runs twice. A revoke that arrives late is one that finds another holder.
var revokeTransitions = testsOf([]transitionRow{
	{name: "revoke a lease: the key stays locked for the time that is left", do: revoking("B1"), listening: "A", before: "B1 40s | A1", first: "revoked 1", after: grave("B1") + "! 40s | A1"},
	{name: "revoke a lease that another holds now", do: revoking("B1"), before: "B2 ttl", first: "revoked 0", after: "="},
	{name: "revoke a lease that has ended", do: revoking("B1"), before: "| A1", first: "revoked 0", after: "="},
	{name: "revoke a lease that another operator has revoked", do: revoking("B1"), before: "revoked:1! ttl", first: "revoked 0", after: "="},
	{name: "revoke a key without a TTL", do: revoking("B1"), before: "B1 forever", first: "revoked -1", after: "="},
	{name: "revoke one of three shared leases", do: revoking("B1/3"), before: "shared ttl | | | A1/3=40s B1/3=ttl C1/3=ttl", first: "revoked 1", after: "shared ttl | | | A1/3=40s " + grave("B1/3") + "!=ttl C1/3=ttl"},
	{name: "revoke shared leases, of which one has ended", do: revoking("A1*", "B1*"), before: "shared ttl | | | B1*=ttl C1*=ttl", first: "revoked 1", after: "shared ttl | | | " + grave("B1*") + "!=ttl C1*=ttl"},
	{name: "revoke a shared lease that is exclusive now", do: revoking("B1*"), before: "B2 ttl", first: "revoked 0", after: "="},

	{name: "renew a lease that was revoked", do: renew, before: grave("A1") + "! ttl", first: "nothing", after: "="},
	{name: "release a lease that was revoked", do: release, before: grave("A1") + "! ttl | B1", first: "nothing", after: "="},
	{name: "take a key whose lease was revoked", do: take, before: grave("B1") + "! 1h", first: "by " + grave("B1") + "!", after: "="},
	{name: "enqueue behind a lease that was revoked: the waiter polls", do: enqueue, before: grave("B1") + "! 1h", first: "by " + grave("B1") + "!, left 1h, foreign", after: grave("B1") + "! 1h | A1"},

	{name: "free a lease", do: freeing("B1", store.Exclusive), listening: "C", before: "B1 ttl | C1", first: "handed", second: "nothing", after: "C1 claim", hints: "C1"},
	{name: "free a lease, and nobody waits", do: freeing("B1", store.Exclusive), before: "B1 ttl", first: "freed", second: "nothing"},
	{name: "free a lease that another holds now", do: freeing("B1", store.Exclusive), before: "B2 ttl | C1", first: "nothing", after: "="},
	{name: "free a shared lease", do: freeing("B1/3", 3), before: "shared ttl | | | B1/3=ttl C1/3=ttl", first: "freed", second: "nothing", after: "shared ttl | | | C1/3=ttl"},
})

// The room of a shared lease that was revoked stays taken, and its holder does not get it back.
func TestRoomOfARevokedPermitStaysTaken(t *testing.T) {
	t.Parallel()
	storetest.OnEachServer(t, func(t *testing.T, rdb redis.UniversalClient) {
		s := newStore(t, rdb)
		stateOf("shared ttl | | | A1/2=ttl B1/2=ttl").Put(t, rdb)
		if got := revoking("A1/2").run(t, s); got.revoked != 1 {
			t.Fatalf("%+v", got)
		}
		if got := renewing(permit).run(t, s); got.granted {
			t.Error("the lease that was revoked is renewed")
		}
		if got := asking(permit, withoutJoin).run(t, s); got.granted {
			t.Error("the lease that was revoked is granted again")
		}
		if got := releasing(permit).run(t, s); got.status != store.NotHeld {
			t.Errorf("the holder releases it: %+v", got)
		}
		stateOf("shared ttl | | | "+grave("A1/2")+"!=ttl B1/2=ttl").Check(t, rdb)
	})
}

// A revoke is sent again if its reply is lost. The second send finds the tombstone of the first.
func TestLostReplyToARevoke(t *testing.T) {
	t.Parallel()
	s, proxy, rdb := behindProxy(t)
	stateOf("B1 ttl").Put(t, rdb)
	if err := rdb.ScriptLoad(t.Context(), s.scripts.Revoke.Source.(string)).Err(); err != nil {
		t.Fatal(err)
	}
	proxy.DropReply(redistest.Named("EVALSHA"), redistest.CloseConn)
	if got := revoking("B1").run(t, s); got.revoked != 1 {
		t.Errorf("%+v", got)
	}
	stateOf(grave("B1")+"! ttl").Check(t, rdb)

	// The second send does not know whether the first one has revoked a lease that has ended since.
	if err := rdb.Del(t.Context(), storetest.LockName).Err(); err != nil {
		t.Fatal(err)
	}
	proxy.DropReply(redistest.Named("EVALSHA"), redistest.CloseConn)
	if _, err := revoking("B1")(t, s); err == nil || !strings.Contains(err.Error(), errOtherSend.Error()) {
		t.Errorf("no tombstone, and one reply is missing: %v", err)
	}
}
