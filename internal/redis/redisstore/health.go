package redisstore

import (
	"time"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/keyspace"
)

// Watch makes the Store record since when servers have not served any command: see
// store.Store.
func (s *Store) Watch() { s.pipeline.Watch(s.probe) }

// Unserved returns since when the master of the key has not served any command, and why: see
// store.Store.
func (s *Store) Unserved(key string) (since time.Time, why error) {
	if s.pipeline.AllServed() {
		return time.Time{}, nil
	}
	since, why = s.pipeline.Unserved(s.names.AppendLock(nil, key))
	if why != nil {
		why = command.Sanitize(why)
	}
	return since, why
}

// probe returns a write that changes nothing: it removes a token that no process has from
// the queue of a lock. A read would not do, because a master that was demoted serves reads.
func (s *Store) probe(lock []byte) command.Command {
	queue := string(s.names.AppendCompanion(nil, lock, keyspace.QueueSuffix))
	return command.New(1, []any{"lrem", queue, 0, ""})
}
