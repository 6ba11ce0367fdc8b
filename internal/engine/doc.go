// Package engine is the part of the lock that runs inside one process. It does not depend
// on Redis: it changes keys by the transitions of a store.Store.
//
// # One queue for each key
//
// All callers of one key in this process that want an exclusive lease form one queue: first
// come, first served. Only the queue sends commands to the store. What it may send depends on
// its state:
//
//		idle ──▶ asking ──▶ held ──▶ releasing ──▶ idle
//		            ▲        │ ▲        │
//		            │        ▼ │        │
//		            │      passing      │
//		            └───────────────────┘
//
//	  - asking: the queue asks the store for the key, one request at a time, until the key
//	    is granted or no caller waits any more. No goroutine waits for the reply, and no
//	    caller owns the request, so a caller that leaves interrupts nothing. Exception: the
//	    first request of an idle queue, and a release, may run on the goroutine of their
//	    caller for a short time.
//	  - held: a caller runs under the lease. When it releases the lease, the lease passes to
//	    the next waiter of this process, or goes back to the store.
//	  - passing: the lease is renewed before it passes to the next waiter.
//	  - releasing: the lease goes back to the store.
//	  - idle: the queue has no caller and no lease, and is reused for another key.
//
// # Several queues for shared leases
//
// The callers that want shared leases of a key with one limit form a waitlist: first come,
// first served. The waitlist has a queue for each lease, with the states above. No queue
// belongs to a caller: the first queue that gets a lease gives it to the first caller.
//
//		callers of key k          queues
//
//		exclusive:  A B C   ◀──   held              (the root of k)
//		3 permits:  D E     ◀──   held, held, asking
//		readers:    F G     ◀──   asking, asking
//
//	  - One queue asks for each caller, with two bounds: a waitlist has no more queues than
//	    its limit, because they would wait for leases of their own process, and no more than
//	    64 queues ask at a time. When the numbers of callers and of queues that ask differ, a
//	    queue starts to ask, or the last one gives up its place.
//	  - Each lease has its own token, TTL, renewals and budget. A lease that is lost or expires
//	    costs its holder only.
//	  - A lease passes to the next caller of its waitlist, in the budget below. Callers of the
//	    same key with another limit count as another process that waits. Besides, a shared
//	    lease does not pass to a caller that came after a waiting exclusive one.
//	  - Between waitlists, and between processes, the store's queue decides.
//	  - Callers that may not wait are refused when no command is in flight for them.
//	  - While callers wait, mostly the first queue of a waitlist checks the key.
//
// The queue of the exclusive callers is the root of the key, by which the others are found.
//
// # One place in the store's queue
//
// Each key has one more queue, in the store. It has at most one token of each process for an
// exclusive lease, for the first waiter of that process, and one for each queue that asks for
// a shared lease. A process first asks without a place in the store's queue. Once it is refused,
// it listens for hints, takes a place, and pauses. Exception: if it handed the key to another
// process within the last second, it takes a place at once. It asks again when a hint arrives,
// and after about a second in any case, because a hint, its holder or its place may be lost.
// Exception: while the key has the token of one process, the values of many such keys are compared
// by one command instead: see watch.go. Only the reply to a request grants the key. A hint never
// does.
//
// A lease passes from holder to holder of one process without limit while no other process
// is known to wait. Otherwise a budget ends after 64 passes or 50 ms. Then one command
// hands the key to the first token of the store's queue, and adds a token of this process
// to its end.
//
// # Episodes, leases and holds
//
// An episode is one place in the store's queue and the lease that follows. Each episode has
// one token. A lease is the store's grant to this process. A hold is the use of the lease
// by one caller. Once a release of a token was sent, the token is dead. If a dead token is
// seen in a key again, it is released again.
//
// # What decides about a lease
//
// Only these begin or end a lease, or change how long it lives:
//
//   - The reply to the queue's own request grants the key, if the key holds the token of
//     that request, and if the validity has not ended when the reply arrives.
//   - The reply to a renewal of the present lease extends the validity, or ends the lease.
//     The reply to a renewal of an earlier lease changes nothing.
//   - The reply to the queue's own release ends the lease. If the key stayed with this
//     process, under the token that rejoined, that reply begins the next lease.
//   - The local clock ends a lease at the end of its validity.
//   - The holder's release, the holder's MaxHold, and Close end a lease.
//
// These decide nothing:
//
//   - A hint. Any client that may publish can forge one. A waiter asks again, and a holder
//     assumes that other processes wait, which costs a pass or a command.
//   - A token that a hint, a reply or the value of a key names. It is released only if it
//     is dead: this process has issued it, and no queue of the key owns it. A queue owns
//     the token of its episode, of its lease, of its release, of the episode that rejoins
//     and of its ballot, and those of lost leases with holders that have not returned. This
//     is checked under the mutex of the queue, before each release.
//   - The reply to a command that was left behind. It has the effect of a hint. The number
//     of releases that hints cause is limited. The number of releases that such replies
//     cause is not: this process has sent no more commands than that.
//   - The caller's context, once the lease is granted. It is the parent of the hold's
//     context, and its end releases nothing. The hold's context ends with the release or
//     the loss, even if the parent never ends.
//
// # Validity
//
// A lease is valid for its TTL, less the drift between two clocks. The time counts from the
// moment when the command was sent that granted or renewed the lease. At its end, a
// schedule cancels the holder's context, even if a renewal is in flight. The schedule has
// one timer for all leases and their renewals.
package engine
