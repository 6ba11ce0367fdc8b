package inspect

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/redis/keyspace"
	"github.com/reqlock/reqlock/internal/redis/redisstore"
	"github.com/reqlock/reqlock/internal/store"
)

// claim is how long the next holder has to confirm that it has the lock.
const claim = 2 * time.Second

// Revoke ends the leases of lock.Holders. Nobody else gets the lock, or the permits, until these leases
// would have ended without another renewal: that is LeaseLeft, usually at most core.WithTTL. Each holder
// learns that its lease is lost from its next renewal, or from its own clock if there is no reply, and
// its context ends with core.ErrLost before that time. So no other holder overlaps with it. To revoke
// one of several permits, leave the others out of lock.Holders.
//
// Revoke changes nothing but the leases that the operator has seen. If none of them is out any more, it
// returns ErrChanged. Leases of HolderRevoked are skipped. It returns ErrAttempt for the lock of an
// idempotent request, and ErrForeign if there is a lease that is none of reqlock. If it returns core.ErrUnavailable, the
// leases may be revoked: call Lock. The event of a change says who made it: see WithObserver and core.AsOperator.
func (i *Inspector) Revoke(ctx context.Context, lock Lock) error {
	if err := checkLock("Revoke", lock); err != nil {
		return err
	}
	request := redisstore.RevokeRequest{Lock: lock.Key.name, Bound: commandBound, Tombstone: redisstore.NewTombstone()}
	var ending []Holder
	for _, h := range lock.Holders {
		switch {
		case h.Kind == HolderProcess && h.LeaseLeft >= 0:
			request.Leases, ending = append(request.Leases, string(h.Lease)), append(ending, h)
		case h.Kind != HolderRevoked:
			return fmt.Errorf("%w: Revoke leaves it alone", ErrForeign)
		}
	}
	if len(request.Leases) == 0 {
		return nil
	}
	revoked, err := await(ctx, i, func(s actor, done func(int, error)) { s.Revoke(request, done) })
	after := HolderRevoked.String()
	switch {
	case err != nil && !errors.Is(err, errUnsure):
		return err
	case err != nil:
	case revoked == redisstore.NoTTL:
		return fmt.Errorf("%w: it has no TTL", ErrForeign)
	case revoked == 0:
		return ErrChanged
	case revoked < len(ending):
		after += fmt.Sprintf(", %d of these leases: the others had ended", revoked)
	}
	i.observeEnded(ctx, core.OperatorRevoked, lock, ending, after, err)
	return err
}

// FreeNow frees the leases of lock.Holders at once, and grants them to the processes that wait. It is
// for a holder that is known to be dead. A holder that lives learns of it at its next renewal only, up to a third of
// core.WithTTL later, and acts beside the next holder until then: with a TTL of 900 ms, for up to
// 296 ms in 50 runs. If Redis does not reach the holder, it acts until its lease would have ended. Only
// core.WithFencing protects against that. Revoke has no such overlap. FreeNow also ends what Revoke
// has left: HolderRevoked.
//
// The errors are those of Revoke. If there are several holders, an error may come after some of them.
func (i *Inspector) FreeNow(ctx context.Context, lock Lock) error {
	if err := checkLock("FreeNow", lock); err != nil {
		return err
	}
	for _, h := range lock.Holders {
		if h.Kind != HolderProcess && h.Kind != HolderRevoked {
			return fmt.Errorf("%w: FreeNow leaves it alone", ErrForeign)
		}
	}
	tokens, err := i.tokensOf(ctx, lock)
	if err != nil {
		return err
	}
	var ended []Holder
	granted := 0
	for _, h := range lock.Holders {
		token, isOut := tokens[h.Lease]
		if !isOut {
			continue
		}
		var status store.ReleaseStatus
		status, err = i.freeNow(ctx, lock, token)
		if status == store.Handed {
			granted++
		}
		if err == nil && status != store.NotHeld || errors.Is(err, errUnsure) {
			ended = append(ended, h)
		}
		if err != nil {
			break
		}
	}
	if len(ended) == 0 && err == nil {
		return ErrChanged
	}
	if len(ended) > 0 {
		unsure := err
		if !errors.Is(err, errUnsure) {
			unsure = nil // it is about another lease, which has not ended
		}
		i.observeEnded(ctx, core.OperatorFreed, lock, ended, afterFreeNow(len(ended), granted), unsure)
	}
	return err
}

// Resolve ends the unknown outcome of an idempotent request, as core.Locker.Resolve does. The record is
// that of Record or Records, which the operator has looked at. The errors and the event are those of core.
func (i *Inspector) Resolve(ctx context.Context, record Record, resolution core.Resolution) error {
	key, ok := record.Key.EndpointKey()
	if !ok {
		return errors.New("reqlock: Resolve: Redis has only a digest of the key of the Record: call core.Locker.Resolve with the key itself")
	}
	var resolved core.Event
	l, err := i.locker(core.WithObserver(func(e core.Event) {
		if e.Change != nil {
			resolved = e
		}
	}))
	if err != nil {
		return err
	}
	defer func() { _ = l.Close(ctx) }()
	err = l.Resolve(ctx, key, resolution, record.Attempt)
	if resolved.Change != nil {
		resolved.Process = "" // that of the Locker above, which is no process of the service
		i.observe(resolved)
	}
	return err
}

// locker returns a Locker with an observer, which has what core does for an operator. The caller closes it.
func (i *Inspector) locker(observer core.Option) (*core.Locker, error) {
	return core.New(i.rdb, core.WithPrefix(i.prefix), core.WithRetention(i.retention), core.WithLogger(nil), observer)
}

// freeNow ends one lease.
func (i *Inspector) freeNow(ctx context.Context, lock Lock, token string) (store.ReleaseStatus, error) {
	request := redisstore.FreeRequest{Lock: lock.Key.name, Bound: commandBound, Token: token, Claim: claim}
	if lock.Shared {
		request.Limit = store.Unlimited // any limit of a shared lease: the token has its own
	}
	released, err := await(ctx, i, func(s actor, done func(store.ReleaseResult, error)) { s.Free(request, done) })
	if err == nil && released.Status == store.Unsure {
		err = errUnsure
	}
	return released.Status, err
}

// afterFreeNow says what has become of leases, some of which were granted to waiters.
func afterFreeNow(ended, granted int) string {
	switch granted {
	case 0:
		return "free"
	case ended:
		return "granted to a waiter"
	default:
		return fmt.Sprintf("%d granted to waiters, %d free", granted, ended-granted)
	}
}

// checkLock refuses a lock that has no lease to end.
func checkLock(action string, lock Lock) error {
	switch {
	case lock.Idempotent:
		return ErrAttempt
	case lock.Key.name == "":
		return fmt.Errorf("reqlock: %s: the Lock is empty: use the result of Lock or Locks", action)
	case len(lock.Holders) == 0:
		return fmt.Errorf("%w: nobody holds it", ErrNotFound)
	}
	return nil
}

// tokensOf returns the tokens of the leases that are out now.
func (i *Inspector) tokensOf(ctx context.Context, lock Lock) (map[LeaseID]string, error) {
	read := newQuery(keyFirst, "getrange", lock.Key.name, 0, maxValue-1)
	if lock.Shared {
		read = newQuery(keyFirst, "zrange", i.names.Companion(lock.Key.name, keyspace.SharedSuffix), 0, -1, "withscores")
	}
	value, err := ask(ctx, i.rdb, read)
	if err != nil && !isOtherKey(err) {
		return nil, asError(ctx, err)
	}
	tokens := make(map[LeaseID]string)
	if token, isText := value.(string); isText {
		tokens[leaseOf(token)] = token
	}
	for token := range scoresOf(value) {
		tokens[leaseOf(token)] = token
	}
	return tokens, nil
}
