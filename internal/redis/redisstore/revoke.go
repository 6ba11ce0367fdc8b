package redisstore

import (
	"time"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/keyspace"
	"github.com/reqlock/reqlock/internal/redis/pipeline"
	"github.com/reqlock/reqlock/internal/store"
)

// tombstoneMark begins the value that replaces the token of a lease that was revoked.
const tombstoneMark = "revoked:"

// NewTombstone returns the tombstone of a new Revoke.
func NewTombstone() string { return tombstoneMark + NewProcess() }

// A RevokeRequest ends leases of a lock, as an operator says.
type RevokeRequest struct {
	// Lock is the name of the lock in Redis. Bound is that of a Target.
	Lock  string
	Bound time.Duration
	// Tombstone is the result of NewTombstone. Two requests never have the same one.
	Tombstone string
	// Leases are the names of the leases that the operator has seen: the SHA-1 of their tokens,
	// as script.Digest returns it. Other leases are not revoked.
	Leases []string
}

// NoTTL is the result of a Revoke of a lock that has no TTL: nothing has changed.
const NoTTL = -1

// Revoke runs revoke.lua. The result is how many of the leases are revoked, by this send or by an
// earlier one, or NoTTL.
func (s *Store) Revoke(r RevokeRequest, done func(revoked int, err error)) {
	t := &revokeOp{done: done, leases: len(r.Leases)}
	t.init(s, t, store.Target{Bound: r.Bound}, false, 0)
	t.encodeScriptOf(&s.scripts.Revoke, r.Lock)
	t.encodeShared()
	t.args = append(t.args, r.Tombstone)
	for _, lease := range r.Leases {
		t.args = append(t.args, lease)
	}
	s.pipeline.Do(&t.Call, pipeline.Release)
}

// revokeOp is a Revoke. It is not pooled, because operators need few.
type revokeOp struct {
	operation
	done   func(int, error)
	leases int
}

// Settle delivers the result. If a send finds fewer leases than there were, an earlier send that
// has no reply may have revoked some, and their tombstones may have expired. Or it may be executed
// later, and find a token that waits now.
func (t *revokeOp) Settle(got pipeline.Reply, uncertain bool) {
	revoked, isNumber := got.Value.(int64)
	switch {
	case got.Err != nil:
		t.done(0, command.NewFault(got.Err, uncertain))
	case !isNumber || revoked < NoTTL || revoked > int64(t.leases):
		t.done(0, command.NewFault(command.UnexpectedReply(got.Value), uncertain))
	case uncertain && revoked < int64(t.leases):
		t.done(0, command.NewFault(errOtherSend, true))
	default:
		t.done(int(revoked), nil)
	}
}

// Late does nothing: a late reply changes nothing for the caller.
func (t *revokeOp) Late(pipeline.Reply) {}

// Free does nothing.
func (t *revokeOp) Free() {}

// A FreeRequest hands on or frees a lock that another process holds, as an operator says.
type FreeRequest struct {
	// Lock is the name of the lock in Redis. Bound is that of a Target.
	Lock  string
	Bound time.Duration
	// Token is the token of the lease. Limit is that of a shared lease.
	Token string
	Limit store.Limit
	// Claim is how long the next holder has to confirm.
	Claim time.Duration
}

// Free runs release.lua or sharedrelease.lua with the token of another process.
func (s *Store) Free(r FreeRequest, done func(store.ReleaseResult, error)) {
	t := s.releases.get()
	t.init(s, t, store.Target{Token: r.Token, Limit: r.Limit, TTL: r.Claim, Bound: r.Bound}, false, 0)
	release := &s.scripts.Release
	if r.Limit.IsShared() {
		release = &s.scripts.SharedRelease
	}
	t.encodeScriptOf(release, r.Lock)
	t.encodeKey(&t.queue, keyspace.QueueSuffix)
	if r.Limit.IsShared() {
		t.encodeShared()
	}
	t.encodeQueue(r.Claim)
	t.args = append(t.args, "") // no token rejoins
	t.done, t.decode = done, decodeRelease
	s.pipeline.Do(&t.Call, pipeline.Release)
}
