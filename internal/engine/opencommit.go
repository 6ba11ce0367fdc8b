package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reqlock/reqlock/internal/inflight"
	"github.com/reqlock/reqlock/internal/store"
)

// maxOpenPause is the longest pause between two sends of an open commit.
const maxOpenPause = time.Second

// An openCommit is a Commit or Done that the store has not accepted within commitTimeout. Its
// caller has got the fault, and the commit goes on until it is accepted, another attempt has
// begun, an operator has resolved the request, the record would expire, or Close ends it. The
// root queue of its key has it, and the mutex of the shard guards it.
//
// While a key has an open commit, no caller with an attempt is in its waitlist. So no attempt
// begins beside the open commit in this process, also if the store has lost the record.
type openCommit struct {
	next    *openCommit // of the same key
	queue   *queue
	request store.ReleaseRequest
	event   Event // about its end
	granted time.Time
	begun   time.Time // when the caller has got the fault
	fault   error     // of the last send
	retries int
	timer   *time.Timer
	sending bool
	last    bool // it is not sent again
	ended   bool // the queue does not have it any more

	unsealed *unsealed          // nil: the request can be sent
	sealed   []byte             // the sealed answer; only the send that is under way uses it
	stopSeal context.CancelFunc // nil: no seal has begun
}

// size is how much the commit counts towards Config.MaxOpenBytes.
func (c *openCommit) size() int64 {
	r := &c.request
	return int64(len(r.Key) + len(r.Token) + len(r.Record) + len(r.Attempt.Fingerprint) + len(r.Attempt.Reference))
}

// openCommits counts the open commits of an engine. The mutex guards changes of the counts.
type openCommits struct {
	maxCount, maxBytes int64
	mu                 sync.Mutex
	count, bytes       atomic.Int64
	over               atomic.Bool      // Close has ended the open commits, and there are no more
	work               inflight.Counter // as count, for Close
	sends              inflight.Counter // commands under way
}

// add counts one more open commit. It reports false if there is no room for it.
func (o *openCommits) add(size int64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.count.Load() >= o.maxCount || o.bytes.Load()+size > o.maxBytes || o.over.Load() {
		return false
	}
	o.work.Add()
	o.count.Add(1)
	o.bytes.Add(size)
	return true
}

func (o *openCommits) remove(size int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.bytes.Add(-size)
	o.count.Add(-1)
	o.work.Done()
}

// keepOpen makes the failed commit of a hold an open commit, and settles the callers that want
// to run an attempt. It reports false if the hold has no commit, or if there is no room for it.
// The queue is the root of its key.
func (q *queue) keepOpen(h *Hold, r store.ReleaseRequest, fault error) bool {
	if !r.Ending.IsFinal() {
		return false
	}
	r.Inline = false
	c := &openCommit{
		queue: q, request: r, fault: fault, granted: h.since, begun: time.Now(), unsealed: h.notSealed(),
		event: Event{
			Kind: Committed, Repeated: true, Ending: h.ending, Key: h.request.Key, Name: h.outcomeName(), Attempt: true,
			Origin: h.request.Attempt.Reference, // the event has no context
		},
	}
	e := q.engine
	if !e.open.add(c.size()) {
		return false
	}
	c.next, q.open = q.open, c
	h.goesOn = true
	if len(q.lostTokens) > 1 || len(q.lostTokens) == 1 && !q.isLost(r.Token) || c.next != nil {
		q.contested = true
	}
	q.refuseIf(func(w *waiter) *Refusal { return q.openRefusal(w.hold.request.Attempt) })
	c.sendLater()
	return true
}

var errUnstored = errors.New("the answer of an earlier request with the key is not stored yet")

// errCommitting is the fault of a caller with an attempt during the commit of an attempt that has
// lost its lease.
var errCommitting = &store.Fault{Temporary: true, Err: errUnstored}

// openRefusal returns the refusal of a caller with an attempt because of an open commit, or nil
// if there is none. A copy of the request gets the answer, which is not stored yet. Exception: the
// store may have the answer of another attempt.
func (q *queue) openRefusal(own *Attempt) *Refusal {
	if q == nil || q.open == nil || own == nil {
		return nil
	}
	c := q.open
	switch {
	case q.contested, isMismatch(c.request.Attempt, own):
		fault := fmt.Errorf("%w: %w", errUnstored, c.fault)
		return &Refusal{Reason: Unavailable, Fault: &store.Fault{Temporary: true, Err: fault}}
	case c.request.Ending == store.EndDone:
		return &Refusal{Reason: Unreplayable, First: c.request.Attempt.Reference}
	default:
		return &Refusal{Reason: Done, Record: c.request.Record, First: c.request.Attempt.Reference}
	}
}

// isOpen reports whether the token belongs to an open commit.
func (q *queue) isOpen(token string) bool {
	for c := q.open; c != nil; c = c.next {
		if c.request.Token == token {
			return true
		}
	}
	return false
}

// hasOpen reports whether the key has an open commit.
func (e *Engine) hasOpen(key string) bool {
	s := e.shardOf(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[key]
	return q != nil && q.open != nil
}

// refuseOpen is openRefusal for a new caller. It costs nothing while there is no open commit.
func (e *Engine) refuseOpen(s *shard, r *Request) *Refusal {
	if e.open.count.Load() == 0 {
		return nil
	}
	return s.queues[r.Key].openRefusal(r.Attempt)
}

// noteRival notes that another attempt has begun, or was done, also in another process, while a
// lost lease has its holder or a commit is open. The queue is the root of its key.
func (q *queue) noteRival() {
	if len(q.lostTokens) > 0 || q.open != nil {
		q.contested = true
	}
}

// endContest notes that no attempt is left that ran beside another one. Exception: if the store has
// accepted the answer of such an attempt, it refuses the commit of the present one.
func (q *queue) endContest() {
	if len(q.lostTokens) == 0 && q.open == nil && !q.answered {
		q.contested = false
	}
}

// sendOpenNow sends the open commits of the key without a pause: the store has just accepted the
// answer of another attempt.
func (q *queue) sendOpenNow() {
	for c := q.open; c != nil; c = c.next {
		c.sendNow()
	}
}
