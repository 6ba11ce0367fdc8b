package engine

import (
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// A state is what a queue is doing. The package comment has a diagram.
type state int

const (
	idle state = iota
	asking
	held
	passing
	releasing
)

// A queue asks the store for a lease for the first caller of its waitlist, passes the
// lease from caller to caller, and gives it back. The mutex of its shard guards all of it.
// A queue that is not needed any more is reused for another key of the same shard.
type queue struct {
	engine *Engine
	shard  *shard
	*waitlist
	// exclusive is the waitlist of a queue for exclusive callers. Such a queue is the root
	// of its key: shared has the waitlists of the shared callers.
	exclusive waitlist
	shared    sharedLists
	// answerDone and releaseDone are onAnswer and onReleased as values, made once, for
	// the store.
	answerDone  func(store.Answer, error)
	releaseDone func(store.ReleaseResult, error)
	// firstLease is the memory of the first lease. Most queues need only one.
	firstLease lease
	queueState
}

// A queueState is the part of a queue that is zeroed for reuse.
type queueState struct {
	key            string
	state          state
	place          int  // in the queues of a shared list
	firstLeaseUsed bool // firstLease is used

	// token is the token of the episode while asking; once granted, the lease has it.
	// lastAsk is the last request for the key, and lastRelease the last release.
	token       string
	lastAsk     store.EnqueueRequest
	lastRelease store.ReleaseRequest
	// ballot is the token of the request in flight, if that differs from token; "" is
	// none.
	ballot string
	// rejoin is the token of the next episode, which the release in flight adds to the
	// store's queue; "" if no caller waited when it was sent.
	rejoin string
	// enqueue is true if a Take cannot be used: another is known to hold the key, or
	// the result of an earlier command is not known.
	enqueue bool
	// joined is true once the token may be in the store's queue or in the key. An
	// episode that ends without a lease then has to release the token.
	joined bool
	// unsure is true once a command of the token may be applied after the reply to another: its
	// reply is lost, or it was sent twice. The token may be in the store's queue then, although the
	// key has it.
	unsure bool
	// handed is true once a hint named the token: another process handed the key to it.
	handed bool
	// contended is true once the store, or a holder in this process, has refused a
	// caller in this episode.
	contended bool

	// timer ends the queue's pause; nil while it does not pause. recheck is true if the
	// queue has to ask again without a pause. listenTimedOut is true if the server did
	// not confirm in time that this process listens.
	timer          *time.Timer
	recheck        bool
	listenTimedOut bool
	// watchedHolder is the holder that the last answer named, watchedUntil when a watched queue asks,
	// and watchIndex its place among the watched queues of the shard, from 1: see watch.go.
	watchedHolder string
	watchedUntil  time.Time
	watchIndex    int
	// releasingToken is true while a token that is given up is released. Then the queue
	// asks.
	releasingToken bool
	// pauses and releasedOrphan belong to this episode: the counts of its pauses, and
	// the dead token that was released last.
	pauses         pauses
	releasedOrphan string

	// lease is the store's grant, in the states held, passing and releasing.
	lease *lease
	// running is the attempt that is known to run, in this process or in another. runningFirst is
	// its reference: see setRunning.
	running      *Attempt
	runningFirst string
	// lostTokens has the tokens of leases that were lost under holders which have not
	// returned yet, with their attempts. The keys must not be deleted while that code
	// runs.
	lostTokens map[string]*Attempt
	// committing counts the commits under way of attempts that have lost their leases. The
	// queue asks nothing meanwhile, because the store may have lost their records. asksLater
	// is true if it has to ask after that, or when waitsForLost ends.
	committing int
	asksLater  bool
	// open are the open commits of a root, the last one first. contested is true while another
	// attempt may have run beside one of them, or beside a holder that has lost its lease: see
	// noteRival. answered is true once the store has accepted the answer of one of these.
	open      *openCommit
	contested bool
	answered  bool
}

// rootOf returns the queue of the exclusive callers of a key, and makes one if there is
// none.
func (e *Engine) rootOf(s *shard, key string) *queue {
	q := s.queues[key]
	if q == nil {
		q = e.unusedQueue(s, key)
		q.lastFault = errNoAnswer
		s.queues[key] = q
	}
	return q
}

// unusedQueue returns an idle queue with an empty waitlist for exclusive callers.
func (e *Engine) unusedQueue(s *shard, key string) *queue {
	var q *queue
	if last := len(s.recycled) - 1; last >= 0 {
		q = s.recycled[last]
		s.recycled[last] = nil
		s.recycled = s.recycled[:last]
	} else {
		q = &queue{engine: e, shard: s}
		q.answerDone, q.releaseDone, q.firstLease.queue = q.onAnswer, q.onReleased, q
		q.waitlist, q.exclusive.root = &q.exclusive, q
	}
	q.key = key
	return q
}

// maxRecycled is how many unused queues a shard keeps.
const maxRecycled = 16

// recycle keeps the queue for reuse, if it is not needed: it is idle, all holders of its
// lost leases have returned, it has no open commit, and it is not the root of a key with
// shared callers or leases. Only two still refer to the queue then: holds that have ended,
// which use nothing but the shard, and renewals of leases that were lost.
func (q *queue) recycle() {
	if q.state != idle || len(q.lostTokens) > 0 || q.open != nil || len(q.shared.lists) > 0 {
		return
	}
	s := q.shard
	if !q.isRoot() {
		q.leaveList()
	} else {
		delete(s.queues, q.key)
	}
	q.queueState = queueState{}
	q.waitlist, q.exclusive = &q.exclusive, waitlist{root: q}
	if q.firstLease.inFlight == 0 && len(s.recycled) < maxRecycled {
		q.firstLease.leaseState = leaseState{} // it refers to its last holder
		s.recycled = append(s.recycled, q)
	}
}

// startEpisode starts an episode under a fresh token: the queue asks the store for the
// first waiter. enqueue excludes a Take.
func (q *queue) startEpisode(enqueue bool) {
	q.openEpisode(enqueue)
	q.ask()
}

func (q *queue) openEpisode(enqueue bool) {
	q.enterAsking(q.engine.newToken(q.limit))
	q.enqueue, q.contended, q.handed = enqueue, false, false
}

// resumeEpisode starts an episode under a token that a release has added to the store's
// queue, or may have added. unsure says that the release may still be applied. The queue asks
// after the pause.
func (q *queue) resumeEpisode(token string, unsure bool, pause time.Duration) {
	q.enterAsking(token)
	q.enqueue, q.joined, q.unsure = true, true, unsure
	q.pause(pause)
}

func (q *queue) enterAsking(token string) {
	if q.state == idle {
		q.episodes++
	}
	q.setState(asking)
	q.setAcquiring(true)
	q.lease, q.rejoin, q.running = nil, "", nil
	q.token, q.ballot, q.joined, q.unsure = token, "", false, false
	q.listenTimedOut, q.pauses, q.releasedOrphan = false, pauses{}, ""
}

// setState changes the state, and counts the leases of the list that have a holder.
func (q *queue) setState(to state) {
	if q.hasHolder() {
		q.holders--
	}
	q.state = to
	if q.hasHolder() {
		q.holders++
	}
}

// endEpisode ends an episode after the end of its lease. It starts the next episode if a
// caller needs it.
func (q *queue) endEpisode(enqueue bool) {
	if q.isNeeded() {
		q.startEpisode(enqueue)
		return
	}
	q.goIdle()
}

// goIdle ends an episode that no caller needs any more. The token leaves the store's
// queue. The queue is recycled, unless a holder of a lost lease has not returned yet.
func (q *queue) goIdle() {
	q.leaveStoreQueue()
	q.setAcquiring(false)
	q.setState(idle)
	q.token, q.rejoin, q.asksLater = "", "", false
	q.lease, q.running = nil, nil
	if q.episodes--; q.episodes == 0 {
		q.unlisten()
	}
	q.recycle()
}

// target returns the target of a store request for the queue's key.
func (q *queue) target(token string, ttl time.Duration) store.Target {
	return store.Target{Key: q.key, Limit: q.limit, Token: token, TTL: ttl, Bound: q.engine.boundOf(ttl)}
}
