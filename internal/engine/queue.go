package engine

import (
	"errors"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// errNoAnswer is the doubt of a line that the store has not answered yet.
var errNoAnswer = errors.New("no answer yet")

// A state says what a line is doing; the package comment draws them.
type state int

const (
	idle state = iota
	asking
	held
	passing
	releasing
)

// A line is one key's state in this process. All of it is guarded by the
// mutex of its shard. One that is forgotten serves again, in the same shard, for
// another key.
type queue struct {
	engine *Engine
	shard  *shard
	// hear and hearReleased are heard and released, for the store.
	answerDone  func(store.Answer, error)
	releaseDone func(store.Released, error)
	// firstLease is where the first of its leases lies, which mostly is the only
	// one.
	firstLease lease
	queueState
}

// A life is that of a line with one key.
type queueState struct {
	key            string
	state          state
	firstLeaseUsed bool // firstLease is

	first, last *waiter
	callers     int // in line
	nowaiters   int // how many of them may not wait
	queued      int // how many of them know that they have to

	// token names the episode while asking; once granted it is the lease's. asked
	// is the question under way, and freed the release.
	token                string
	lastAsk, lastRelease store.Request
	// ballot is the token of the question under way, where that is another one;
	// "" is none.
	ballot string
	// rejoin is the token of the next episode, which the release under way puts
	// in line; "" if nobody waited when it was sent.
	rejoin string
	// enqueue is true once a take would not do: another is known to hold the
	// key, or what became of an earlier command is not known.
	enqueue bool
	// joined is true once the token may stand in the store's line, or hold the
	// key: an episode that ends without a lease then has to leave.
	joined bool
	// promised is true once a hint named the token: the key was handed to it.
	handed bool
	// contended is true once the store, or a holder in this process, refused
	// somebody in this episode.
	contended bool
	// doubt is why the store's last command gave no answer; nil after one that
	// did. While it is set, nobody can say that the key is held by another.
	lastFault error

	// timer ends the line's pause; nil while it does not pause. again is true if
	// it has to look again without one, and deaf if it waited in vain to be
	// known to listen.
	timer          *time.Timer
	recheck        bool
	listenTimedOut bool
	// undoing is true while an attempt is undone that is not to run; it asks then.
	releasingToken bool
	// patience and swept are about the questions of this episode: how its
	// pauses grow, and the orphan that was released last.
	pauses         pauses
	releasedOrphan string
	// ready and stop are those of the store's Listen; nil while the line does
	// not listen. told is when it last heard a hint.
	ready    <-chan struct{}
	stop     func()
	lastHint time.Time

	// lease is the store's grant, in the states held, passing and freeing.
	lease *lease
	// running is the attempt that is known to run, here or in another process.
	running *Attempt
	// haunted holds the tokens of leases that were lost under holders who have
	// not come back yet, and what those run: their keys must not be deleted under
	// running code.
	lostTokens map[string]*Attempt
}

// lineOf returns the line of a key, a new one if need be.
func (e *Engine) queueOf(s *shard, key string) *queue {
	q := s.queues[key]
	if q != nil {
		return q
	}
	if last := len(s.recycled) - 1; last >= 0 {
		q = s.recycled[last]
		s.recycled[last] = nil
		s.recycled = s.recycled[:last]
	} else {
		q = &queue{engine: e, shard: s}
		q.answerDone, q.releaseDone, q.firstLease.queue = q.onAnswer, q.onReleased, q
	}
	q.key, q.lastFault = key, errNoAnswer
	s.queues[key] = q
	return q
}

// spareLines is how many forgotten lines a shard keeps.
const maxRecycled = 16

// forget forgets the line, at rest. Nobody refers to it any more but holds that
// have ended and callers who are about to leave, which look at nothing but the
// shard, and renewals of leases that were lost.
func (q *queue) recycle() {
	s := q.shard
	delete(s.queues, q.key)
	q.queueState = queueState{}
	if q.firstLease.inFlight == 0 && len(s.recycled) < maxRecycled {
		q.firstLease.leaseState = leaseState{} // which knows its last holder
		s.recycled = append(s.recycled, q)
	}
}

// begin starts an episode under a fresh token: the line asks the store for its
// first waiter. enqueue says that a take would not do.
func (q *queue) startEpisode(enqueue bool) {
	q.openEpisode(enqueue)
	q.ask()
}

func (q *queue) openEpisode(enqueue bool) {
	q.enterAsking(q.engine.newToken())
	q.enqueue, q.contended, q.handed = enqueue, false, false
}

// resume starts an episode under a token that a release has put in line, or may
// have. The line looks for it after the pause.
func (q *queue) resumeEpisode(token string, pause time.Duration) {
	q.enterAsking(token)
	q.enqueue, q.joined = true, true
	q.pause(pause)
}

func (q *queue) enterAsking(token string) {
	q.state = asking
	q.lease, q.rejoin, q.running = nil, "", nil
	q.token, q.ballot, q.joined = token, "", false
	q.listenTimedOut, q.pauses, q.releasedOrphan = false, pauses{}, ""
}

// proceed goes on after a lease is gone: with the next episode if somebody
// waits, else to rest.
func (q *queue) endEpisode(enqueue bool) {
	if q.first != nil {
		q.startEpisode(enqueue)
		return
	}
	q.goIdle()
}

// rest ends an episode in which nobody waits any more: its token leaves the
// store's line, and the line is forgotten unless a lost holder is still to come
// back.
func (q *queue) goIdle() {
	q.leaveStoreQueue()
	q.unlisten()
	q.state = idle
	q.token, q.rejoin = "", ""
	q.lease, q.running = nil, nil
	if len(q.lostTokens) == 0 {
		q.recycle()
	}
}

// isHaunted reports whether the token is that of a lost lease whose holder has
// not come back.
func (q *queue) isLost(token string) bool {
	_, lost := q.lostTokens[token]
	return lost
}

// haunt remembers a lease that was lost under a running holder.
func (q *queue) markLost(lease *lease) {
	if q.lostTokens == nil {
		q.lostTokens = make(map[string]*Attempt)
	}
	q.lostTokens[lease.token] = lease.attempt
}

// exorcise forgets a haunted token: its holder came back.
func (q *queue) forgetLost(token string) {
	delete(q.lostTokens, token)
	if q.state == idle && len(q.lostTokens) == 0 {
		q.recycle()
	}
}

// request returns the store's request for the line's key.
func (q *queue) request(token string, r Request) store.Request {
	return store.Request{
		Key: q.key, Token: token, TTL: r.TTL, Bound: q.engine.boundOf(r.TTL), Claim: q.engine.claimOf(r.TTL),
	}
}

// listen makes the line one that hears hints, if it is not yet. It does so from
// when somebody has to wait until the line comes to rest.
func (q *queue) listen() {
	if q.stop == nil {
		q.ready, q.stop = q.engine.store.Listen(q.key)
	}
}

// unlisten ends it.
func (q *queue) unlisten() {
	if q.stop != nil {
		q.stop()
		q.ready, q.stop = nil, nil
	}
}

// hears reports whether the server knows that this process listens.
func (q *queue) isListening() bool {
	select {
	case <-q.ready: // nil where it does not listen: never
		return true
	default:
		return false
	}
}
