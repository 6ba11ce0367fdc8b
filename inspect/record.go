package inspect

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/redis/keyspace"
	"github.com/reqlock/reqlock/internal/redis/script"
	"github.com/reqlock/reqlock/internal/store"
)

// A Record is what Redis has about an idempotent request. It never has the answer.
type Record struct {
	// Key is the key of its lock. It prints as a digest. Key.EndpointKey is what core.ReadRecord and
	// core.Resolve take.
	Key Key
	// State, Attempt, Number and Retention are those of core.Record.
	State     core.RecordState
	Attempt   core.AttemptID
	Number    int
	Retention time.Duration
	// First is that of core.Record.
	First string
	// Process is the id of the process of the attempt, or "" if an operator has resolved it.
	Process string
	// AnswerBytes is the length of the stored answer as Redis has it.
	AnswerBytes int
	// Age is how long ago the record was written or renewed: about how long ago the process died, if the
	// State is core.StateUnknown. It is WithRetention less Retention, and so is right only if the service
	// has the same WithRetention; it is 0 if Retention is longer.
	Age time.Duration
}

// Records lists the records of idempotent requests: Filter{State: core.StateUnknown} those with an
// unknown outcome. It looks through all keys: see Locks for what that means, and for its error.
func (i *Inspector) Records(ctx context.Context, filter Filter) (RecordPage, error) {
	page := RecordPage{}
	found := make(map[string]bool)
	pattern := i.names.RecordPattern()
	if filter.Match != "" {
		pattern = i.names.Companion(i.names.LockPattern(attemptMark+filter.Match), keyspace.RecordSuffix)
	}
	s := scanner{Inspector: i, pattern: pattern, kind: "string"}
	err := s.run(ctx, func(keys reader, names []string) (bool, error) {
		records, err := i.readRecords(ctx, keys, names)
		for _, r := range records {
			if found[r.Key.name] || !filter.hasRecord(&r) {
				continue
			}
			if len(page.Records) == i.limit {
				return false, nil
			}
			found[r.Key.name] = true
			page.Records = append(page.Records, r)
		}
		return true, err
	})
	page.Scan = s.Scan
	slices.SortFunc(page.Records, func(a, b Record) int { return cmp.Compare(a.Key.name, b.Key.name) })
	return page, err
}

// Record reads one record. The key may be written in any of these ways: the endpoint key, also with
// "i:" in front; the name in Redis of the record or of its lock; the digest in a line of the log. For
// a digest, Record looks through all keys. It returns core.ErrNotFound if there is no record.
func (i *Inspector) Record(ctx context.Context, key string) (Record, error) {
	var locks []string
	if key != "" {
		locks = append(locks, i.names.Lock(attemptMark+key))
	}
	if strings.HasPrefix(key, attemptMark) {
		locks = append(locks, i.names.Lock(key))
	}
	if lock, _, ok := i.names.OfAny(key); ok {
		locks = append(locks, lock)
	}
	for _, lock := range locks {
		records, err := i.readRecords(ctx, i.reader(), []string{i.names.Companion(lock, keyspace.RecordSuffix)})
		if err != nil {
			return Record{}, err
		}
		if len(records) > 0 {
			return records[0], nil
		}
	}
	if !isDigest(key) {
		return Record{}, core.ErrNotFound
	}
	return i.recordOfDigest(ctx, key)
}

// recordOfDigest finds the record whose key has this digest.
func (i *Inspector) recordOfDigest(ctx context.Context, digest string) (record Record, err error) {
	err = core.ErrNotFound
	s := scanner{Inspector: i, pattern: i.names.RecordPattern(), kind: "string"}
	failed := s.run(ctx, func(keys reader, names []string) (bool, error) {
		for _, name := range names {
			if lock, key, isRecord := i.names.OfRecord(name); !isRecord || (Key{key, lock}).String() != digest {
				continue
			}
			records, failed := i.readRecords(ctx, keys, []string{name})
			if len(records) > 0 {
				record, err = records[0], nil
			}
			return failed == nil && err != nil, failed
		}
		return true, nil
	})
	if failed != nil {
		return Record{}, failed
	}
	return record, err
}

// The queries of one record. The lock is read before and after the record, so that an attempt that
// begins or ends meanwhile does not look as if it had died.
const (
	lockBefore = iota
	startOfRecord
	lockAfter
	sizeOfRecord
	retention
	recordQueries
)

// readRecords reads records. It leaves out names that are no record.
func (i *Inspector) readRecords(ctx context.Context, keys reader, names []string) (records []Record, err error) {
	var found []Record
	var queries []*query
	for _, name := range names {
		lock, key, ok := i.names.OfRecord(name)
		if !ok || key != "" && !strings.HasPrefix(key, attemptMark) {
			continue
		}
		found = append(found, Record{Key: Key{key, lock}})
		queries = append(queries,
			newQuery(keyFirst, "getrange", lock, 0, maxValue-1),
			newQuery(keyFirst, "getrange", name, 0, script.RecordStart-1),
			newQuery(keyFirst, "getrange", lock, 0, maxValue-1),
			newQuery(keyFirst, "strlen", name),
			newQuery(keyFirst, "pttl", name))
	}
	if len(found) == 0 {
		return nil, nil
	}
	send(ctx, keys, queries)
	for n, r := range found {
		exists, err := r.decode(queries[n*recordQueries:(n+1)*recordQueries], i.retention)
		if err != nil {
			return nil, asError(ctx, err)
		}
		if exists {
			records = append(records, r)
		}
	}
	return records, nil
}

// decode fills the record, which is kept for this time after each renewal, and reports whether it exists.
func (r *Record) decode(queries []*query, keep time.Duration) (exists bool, err error) {
	var replies [recordQueries]any
	for n := range replies {
		if replies[n], err = queries[n].replyOfKey(); err != nil {
			return false, err
		}
	}
	start, _ := replies[startOfRecord].(string) // "" for a key of another type
	size, _ := replies[sizeOfRecord].(int64)
	left, _ := replies[retention].(int64)
	found, isRecord := script.ParseRecord(start, int(size))
	if left == goneTTL || isRecord && found.State == 'A' {
		return false, nil
	}
	r.Retention = max(0, leftOf(left))
	if left > 0 {
		r.Age = max(0, keep-r.Retention)
	}
	r.State = stateOf(&found, found.Token != "" && (replies[lockBefore] == found.Token || replies[lockAfter] == found.Token))
	switch r.State {
	case core.StateRunning, core.StateUnknown:
		r.Number = found.Number
	case core.StateAnswered:
		r.AnswerBytes = int(size) - found.Answer
	}
	if store.IsReference(found.Reference) {
		r.First = found.Reference
	}
	r.Process, _, _ = parseToken(strings.TrimPrefix(found.Token, "aborted:"))
	return true, r.Attempt.UnmarshalText([]byte(script.Digest(found.Token)))
}

// stateOf returns the state of a record that is not the mark of an abort, as outcome.lua does. A record that cannot be read
// has no state.
func stateOf(found *script.Record, isRunning bool) core.RecordState {
	switch {
	case found.State == 'R' && isRunning:
		return core.StateRunning
	case found.State == 'R':
		return core.StateUnknown
	case found.State == 'D':
		return core.StateAnswered
	case found.State == 'U':
		return core.StateDone
	default:
		return core.StateDamaged
	}
}
