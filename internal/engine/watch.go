package engine

import (
	"slices"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// A queue that waits behind the lease of another process asks again only for two reasons: the key
// has another value, or the store's queue has lost the place. So once two answers in a row have named
// the same lease, the queue is watched: its shard compares the values of all watched keys once a
// recheckInterval, many by one command, and wakes the queues whose keys have changed. The queue itself
// asks when the key would expire, and after watchedPause in any case.
//
// A queue is not watched if its next answer could differ although the value is the same. So these ask
// once a recheckInterval:
//   - a queue behind a foreign holder: it may be the first in the store's queue now, and polls then
//   - one for a shared lease, or behind shared leases: the value is that of a marker, and admit.lua
//     counts on the head's requests
//   - one that does not listen
//   - one behind a token of this process, which may be dead: see isOrphan
//
// If the first waiter of a watched queue has an attempt, the record decides, too. So the queue asks instead
// of each comparison.

// watchedPause is how long a watched queue pauses at most. The store keeps its queue for a minute after
// the last request.
const watchedPause = 10 * time.Second

// maxCompared is how many keys a command compares at most.
const maxCompared = 64

// refusedPause is how long a shard watches no queue after the server has refused to compare keys. It may
// refuse that for ever, as a proxy does, or until somebody has changed the rights of the user.
const refusedPause = time.Minute

// watching are the watched queues of a shard, in any order.
type watching struct {
	queues  []*queue
	timer   *time.Timer // compares their keys; nil if no queue is watched
	refused time.Time   // when the server last refused that
}

// isSteady reports whether the queue can be watched after this answer, and notes the holder.
func (q *queue) isSteady(answer store.Answer, err error) bool {
	last := q.watchedHolder
	q.watchedHolder = ""
	if err != nil || answer.Granted || answer.Shared || answer.ForeignHolder || !q.isRoot() || !q.isListening() ||
		!q.canBeCompared() || !q.engine.isOfAnother(answer.Holder) {
		return false
	}
	q.watchedHolder = answer.Holder
	return answer.Holder == last && answer.Remaining > recheckInterval
}

// isOfAnother reports whether a value has the form of a token of another process. Process ids have one
// length.
func (e *Engine) isOfAnother(value string) bool {
	process, _, _, ok := store.ParseToken(value)
	return ok && process != e.process && len(process) == len(e.process)
}

// canBeCompared reports whether the store compares keys, and the server has not refused that lately.
func (q *queue) canBeCompared() bool {
	return q.engine.comparer != nil && time.Since(q.shard.watching.refused) > refusedPause
}

// watch pauses the queue and makes the shard watch it. remaining is the remaining TTL of the key.
func (q *queue) watch(remaining time.Duration) {
	pause := min(jitter(watchedPause), remaining+jitter(recheckInterval)-recheckInterval)
	q.pause(pause)
	if q.timer == nil {
		return // it asks
	}
	q.watchedUntil = time.Now().Add(pause)
	w := &q.shard.watching
	w.queues = append(w.queues, q)
	q.watchIndex = len(w.queues)
	if w.timer == nil {
		q.engine.compareLater(q.shard)
	}
}

// unwatch undoes watch.
func (q *queue) unwatch() {
	if q.watchIndex == 0 {
		return
	}
	w := &q.shard.watching
	end := len(w.queues) - 1
	w.queues[end].watchIndex = q.watchIndex
	w.queues[q.watchIndex-1], w.queues[end] = w.queues[end], nil
	w.queues, q.watchIndex = w.queues[:end], 0
	if end > 0 {
		return
	}
	if w.timer.Stop() {
		q.engine.work.Done()
	}
	w.timer = nil
}

// compareLater sets the timer of a shard. The caller has locked its mutex.
func (e *Engine) compareLater(s *shard) {
	e.work.Add()
	var timer *time.Timer
	timer = time.AfterFunc(jitter(recheckInterval), func() {
		defer e.work.Done()
		s.mu.Lock()
		seen := s.seen(time.Now().Add(recheckInterval + recheckInterval/4))
		if s.watching.timer == timer { // otherwise no queue is watched any more, or another timer is set
			e.compareLater(s)
		}
		s.mu.Unlock()
		for some := range slices.Chunk(seen, maxCompared) {
			e.compare(s, some)
		}
	})
	s.watching.timer = timer
}

// seen returns the keys to compare. The queues that would ask before the next time ask now instead:
// requests that are sent together cost less. The caller has locked the shard's mutex.
func (s *shard) seen(next time.Time) []store.Seen {
	seen := make([]store.Seen, 0, len(s.watching.queues))
	for _, q := range slices.Clone(s.watching.queues) {
		if q.watchedUntil.Before(next) || q.first != nil && q.first.hold.request.Attempt != nil {
			q.wake()
		} else {
			seen = append(seen, store.Seen{Key: q.key, Holder: q.watchedHolder})
		}
	}
	return seen
}

// compare wakes the watched queues whose keys do not have their values any more, and all if the store
// does not answer: each then handles the fault of its own request. Until that has ended, the fault of the
// comparison stands for it.
func (e *Engine) compare(s *shard, seen []store.Seen) {
	e.work.Add()
	e.comparer.Compare(seen, e.bound, func(changed []int, err error) {
		defer e.work.Done()
		s.mu.Lock()
		defer s.mu.Unlock()
		if err == nil {
			for _, i := range changed {
				s.wakeWatched(seen[i], nil)
			}
			return
		}
		fault := store.FaultOf(err)
		if !fault.Temporary {
			s.watching.refused, fault = time.Now(), nil
		}
		for _, each := range seen {
			s.wakeWatched(each, fault)
		}
	})
}

// wakeWatched wakes the queue of a key, unless it has asked since. fault is why the key was not compared,
// if the next request may fail, too.
func (s *shard) wakeWatched(seen store.Seen, fault *store.Fault) {
	if q := s.queues[seen.Key]; q != nil && q.watchIndex > 0 && q.watchedHolder == seen.Holder {
		if fault != nil {
			q.lastFault = fault
		}
		q.wake()
	}
}
