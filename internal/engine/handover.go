package engine

import (
	"context"
	"errors"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// A holder hands its lease over to another process by a ticket: a token of no process, which the key
// gets instead of the token of the lease. It lives for the grace, and nobody renews it. Accept
// replaces it by the token of a new lease.

// A ticket is what a handover leaves in the key. The mutex of the key's shard guards it.
type ticket struct {
	token     string
	grace     time.Duration
	settled   bool // the result of the handover is known
	abandoned bool // the caller has left before that, so nobody gets the ticket
}

// NewTicket returns the token of a new ticket. process is a process id that no engine uses.
func NewTicket(process string) string { return store.NewToken(process, store.Exclusive, 1) }

// Handover ends the hold and leaves the key to the token of a ticket, for the grace. The hold's
// context ends before the command is sent, also if that fails. With a loss, the hold had ended
// before. The error is a fault, or ctx's error if ctx ends before the reply: then the ticket is
// discarded. The end of ctx by the handover itself does not count.
//
// Release returns the same later. A hold of an attempt, and a shared one, must not be handed over.
func (h *Hold) Handover(ctx context.Context, token string, grace time.Duration) (Loss, error) {
	t := &ticket{token: token, grace: grace}
	if !h.startReleaseTo(t, awaited, EndAbort, nil) {
		return h.EndedBy(), nil
	}
	select {
	case <-h.done:
	case <-ctx.Done():
		if errors.Is(context.Cause(ctx), h.engine.hooks.Cause(GivenAway)) || !h.abandon(t) {
			<-h.done // it comes within the bounds of the commands
			break
		}
		_, _ = h.outcome() // the events so far; the queue gets the others
		return NotLost, ctx.Err()
	}
	return h.outcome()
}

// abandon notes that the caller has left. It reports false if the result is known.
func (h *Hold) abandon(t *ticket) bool {
	h.shard.mu.Lock()
	defer h.shard.mu.Unlock()
	t.abandoned = !t.settled
	return t.abandoned
}

// ticketToken returns the token that the key gets by Handover; "" is none. h may be nil. The caller
// holds the mutex.
func (h *Hold) ticketToken() string {
	if h == nil || h.result == nil || h.result.ticket == nil {
		return ""
	}
	return h.result.ticket.token
}

// endCause returns the cause with which the context of a hold ends that is not lost.
func (h *Hold) endCause() error {
	h.shard.mu.Lock()
	defer h.shard.mu.Unlock()
	if h.ticketToken() == "" {
		return nil
	}
	return h.engine.hooks.Cause(GivenAway)
}

// completeHandover handles the result of the store. The caller holds the mutex.
func (h *Hold) completeHandover(err error, after *callbacks) {
	if h.ticketToken() == "" {
		return
	}
	t := h.result.ticket
	t.settled = true
	switch {
	case err != nil || t.abandoned:
		h.engine.discardTicket(h.request.Key, h.token, t)
	case h.loss == NotLost:
		h.report(Event{Kind: HandedOver, Held: time.Since(h.since)}.of(h), after)
	}
}

// discardTicket frees a key that nobody can accept. It releases the token of the lease first: after
// that, a send of the handover that the network has delayed changes nothing.
func (e *Engine) discardTicket(key, lease string, t *ticket) {
	over := time.Now().Add(min(t.grace, discardTimeout))
	e.spawn(func() {
		e.discard(keyToken{key, lease}, nil, over)
		e.discard(keyToken{key, t.token}, nil, over)
	})
}

// errTicketUsed says why a ticket is refused.
var errTicketUsed = errors.New("it was accepted before, its grace is over, an operator has ended it, redis has lost it, or it is of another redis or prefix")

// Accept is Acquire for the key of a ticket, with its token. It waits for the store, and for no
// other holder. The reason of the refusal is TicketUsed if the key does not hold the token any
// more. A command without a reply is repeated with the same token of the new lease, so it finds
// what it has done before.
func (e *Engine) Accept(ctx context.Context, token string, r Request) (*Hold, error) {
	r.Limit, r.Attempt, r.Fencing = store.Exclusive, nil, true
	return e.acquire(ctx, &r, token)
}

// ticketList returns a new waitlist for the caller with a ticket. The list has one queue, which is
// not the root of the key: callers without a ticket wait beside it as behind another process. The
// queue is the root.
func (q *queue) ticketList(token string) *waitlist {
	l := &waitlist{root: q, ticket: token, lastFault: errNoAnswer}
	q.shared.lists = append(q.shared.lists, l)
	return l
}

// isRoot reports whether the list is that of the exclusive callers without a ticket.
func (l *waitlist) isRoot() bool { return l == &l.root.exclusive }

// exclusiveQueue returns the one queue of an exclusive list.
func (l *waitlist) exclusiveQueue() *queue {
	if l.isRoot() {
		return l.root
	}
	return l.queues[0]
}
