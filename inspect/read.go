package inspect

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/keyspace"
	"github.com/reqlock/reqlock/internal/redis/script"
	"github.com/reqlock/reqlock/internal/store"
)

const (
	// maxValue is how much of a value is read. That of a lock is shorter.
	maxValue = 256
	// maxEntries is how many holders and waiters of one lock are read.
	maxEntries = 1000
	// minHoldValue is the value of a lock during the rest of a WithMinHold: see keep.lua.
	minHoldValue = "reqlock-min-hold"
	// tombstoneMark begins the tombstone of a lease that was revoked: see revoke.lua.
	tombstoneMark = "revoked:"
)

// marker is the value of a lock while shared leases are out: see marker.lua.
var marker = regexp.MustCompile(`^shared \d+ \S+ \d+$`)

// A reading is one lock that is read: its queries.
type reading struct {
	lock                             Lock
	exists                           bool
	value, ttl, length, queue, fence *query
	record                           *query
	leases                           *query // of shared leases
}

// readLocks reads locks. It leaves out those that do not exist. withQueue says whether their Waiters and
// FenceMax are read.
func (i *Inspector) readLocks(ctx context.Context, keys reader, names []string, withQueue bool) ([]Lock, error) {
	readings := make([]reading, 0, len(names))
	var queries []*query
	for _, name := range names {
		key, isLock := i.names.OfLock(name)
		if !isLock {
			continue
		}
		r := reading{lock: Lock{Key: Key{key, name}, Idempotent: strings.HasPrefix(key, attemptMark)}}
		queue := i.names.Companion(name, keyspace.QueueSuffix)
		r.value, r.ttl, r.length = newQuery(keyFirst, "getrange", name, 0, maxValue-1), newQuery(keyFirst, "pttl", name), newQuery(keyFirst, "llen", queue)
		queries = append(queries, r.value, r.ttl, r.length)
		if key == "" { // only its record says that it is the lock of an idempotent request
			r.record = newQuery(keyFirst, "exists", i.names.Companion(name, keyspace.RecordSuffix))
			queries = append(queries, r.record)
		}
		if withQueue {
			r.queue = newQuery(keyFirst, "lrange", queue, 0, maxEntries-1)
			r.fence = newQuery(keyFirst, "get", i.names.Companion(name, keyspace.FenceSuffix))
			queries = append(queries, r.queue, r.fence)
		}
		readings = append(readings, r)
	}
	if len(readings) == 0 {
		return nil, nil
	}
	send(ctx, keys, queries)
	var shared []*query
	for n := range readings {
		r := &readings[n]
		if err := r.decode(); err != nil {
			return nil, asError(ctx, err)
		}
		if r.lock.Shared {
			r.leases = newQuery(keyFirst, "zrange", i.names.Companion(r.lock.Key.name, keyspace.SharedSuffix), 0, maxEntries-1, "withscores")
			shared = append(shared, r.leases)
		}
	}
	now := 0.0
	if len(shared) > 0 {
		var err error
		if now, err = i.clock(ctx, keys, shared[0]); err != nil {
			return nil, asError(ctx, err)
		}
		send(ctx, keys, shared)
	}
	locks := make([]Lock, 0, len(readings))
	for n := range readings {
		r := &readings[n]
		if r.lock.Shared {
			if err := r.decodeShared(now); err != nil {
				return nil, asError(ctx, err)
			}
		}
		if r.exists {
			locks = append(locks, r.lock)
		}
	}
	return locks, nil
}

// decode fills the lock, except for its shared leases.
func (r *reading) decode() error {
	queries := [...]*query{r.value, r.ttl, r.length, r.queue, r.fence, r.record}
	var replies [len(queries)]any
	for n, q := range queries {
		if q == nil {
			continue
		}
		var err error
		if replies[n], err = q.replyOfKey(); err != nil {
			return err
		}
	}
	value, _ := replies[0].(string)
	left, hasTTL := replies[1].(int64)
	length, _ := replies[2].(int64)
	queue, _ := replies[3].([]any)
	r.lock.Waiting = int(length)
	for _, token := range texts(queue) {
		r.lock.Waiters = append(r.lock.Waiters, waiterOf(token))
	}
	if fence, isText := replies[4].(string); isText {
		r.lock.FenceMax, _ = strconv.ParseInt(fence, 10, 64)
	}
	r.lock.Idempotent = r.lock.Idempotent || replies[5] == int64(1)
	isHeld := value != "" && hasTTL && left != goneTTL
	r.exists = isHeld || length > 0
	r.lock.Shared = isHeld && marker.MatchString(value)
	if isHeld && !r.lock.Shared {
		h := holderOf(value)
		h.LeaseLeft = leftOf(left)
		r.lock.Holders = []Holder{h}
	}
	return nil
}

// goneTTL is the reply of PTTL for a key that does not exist.
const goneTTL = -2

// leftOf returns the time that a key has, or -1 if it has no TTL.
func leftOf(pttl int64) time.Duration {
	switch {
	case pttl < 0:
		return -1
	case pttl > math.MaxInt64/int64(time.Millisecond):
		return math.MaxInt64
	}
	return time.Duration(pttl) * time.Millisecond
}

// clock returns the time in ms of the server that is read, or of the one that has the key of the query.
func (i *Inspector) clock(ctx context.Context, keys reader, q *query) (ms float64, err error) {
	server := keys.server
	if server == nil {
		if server, err = i.masterOf(ctx, fmt.Sprint(q.args[keyFirst])); err != nil {
			return 0, err
		}
	}
	value, err := ask(ctx, server, newQuery(noKey, "time"))
	if err != nil {
		return 0, err
	}
	ms, ok := millisecondsOf(value)
	if !ok {
		return 0, command.UnexpectedReply(value)
	}
	return ms, nil
}

// decodeShared fills the shared leases that have not ended at this time in ms.
func (r *reading) decodeShared(now float64) error {
	leases, err := r.leases.replyOfKey()
	if err != nil {
		return err
	}
	for token, ends := range scoresOf(leases) {
		if ends > now {
			h := holderOf(token)
			h.LeaseLeft = leftOf(int64(min(ends-now, 1<<62)))
			r.lock.Holders = append(r.lock.Holders, h)
		}
	}
	return nil
}

// millisecondsOf returns the reply of TIME in ms.
func millisecondsOf(value any) (ms float64, ok bool) {
	fields, _ := value.([]any)
	if len(fields) != 2 {
		return 0, false
	}
	seconds, err := strconv.ParseFloat(fmt.Sprint(fields[0]), 64)
	micros, err2 := strconv.ParseFloat(fmt.Sprint(fields[1]), 64)
	return seconds*1000 + micros/1000, err == nil && err2 == nil
}

// scoresOf yields the members and scores of the reply of ZRANGE WITHSCORES: one list of both in
// RESP2, and a list of pairs in RESP3.
func scoresOf(value any) func(yield func(member string, score float64) bool) {
	fields, _ := value.([]any)
	var flat []any
	for _, field := range fields {
		if pair, isPair := field.([]any); isPair {
			flat = append(flat, pair...)
		} else {
			flat = append(flat, field)
		}
	}
	return func(yield func(string, float64) bool) {
		for n := 0; n+1 < len(flat); n += 2 {
			member, isText := flat[n].(string)
			score, err := strconv.ParseFloat(fmt.Sprint(flat[n+1]), 64)
			if isText && err == nil && !yield(member, score) {
				return
			}
		}
	}
}

// holderOf returns the holder of a lease with this token, or with this value of a lock.
func holderOf(token string) Holder {
	switch process, limit, ok := parseToken(token); {
	case ok:
		return Holder{Kind: HolderProcess, Lease: leaseOf(token), Process: process, Permits: max(0, int(limit))}
	case strings.HasPrefix(token, tombstoneMark):
		return Holder{Kind: HolderRevoked, Lease: leaseOf(token)}
	case token == minHoldValue:
		return Holder{Kind: HolderMinHold}
	default:
		return Holder{Kind: HolderForeign}
	}
}

// leaseOf returns the name of the lease with this token, as the scripts make it.
func leaseOf(token string) LeaseID { return LeaseID(script.Digest(token)) }

// waiterOf returns the waiter with this token.
func waiterOf(token string) Waiter {
	process, limit, ok := parseToken(token)
	if !ok {
		return Waiter{}
	}
	return Waiter{Process: process, Shared: limit.IsShared(), Permits: max(0, int(limit))}
}

// processID is the id of a process in a token.
var processID = regexp.MustCompile(`^[0-9a-f]{32}$`)

// parseToken returns the process and the limit in a token of reqlock.
func parseToken(token string) (process string, limit store.Limit, ok bool) {
	process, limit, _, ok = store.ParseToken(token)
	return process, limit, ok && processID.MatchString(process)
}
