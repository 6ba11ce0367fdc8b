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
	freeing
)

// A line is one key's state in this process. All of it is guarded by the
// mutex of its shard. One that is forgotten serves again, in the same shard, for
// another key.
type line struct {
	engine *Engine
	shard  *shard
	// hear and hearReleased are heard and released, for the store.
	hear         func(store.Answer, error)
	hearReleased func(store.Released, error)
	// firstLease is where the first of its leases lies, which mostly is the only
	// one.
	firstLease lease
	life
}

// A life is that of a line with one key.
type life struct {
	key   string
	state state
	used  bool // firstLease is

	first, last *waiter
	callers     int // in line
	tries       int // how many of them may not wait
	queued      int // how many of them know that they have to

	// token names the episode while asking; once granted it is the lease's. asked
	// is the question under way, and freed the release.
	token        string
	asked, freed store.Request
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
	promised bool
	// contended is true once the store, or a holder in this process, refused
	// somebody in this episode.
	contended bool
	// doubt is why the store's last command gave no answer; nil after one that
	// did. While it is set, nobody can say that the key is held by another.
	doubt error

	// timer ends the line's pause; nil while it does not pause. again is true if
	// it has to look again without one, and deaf if it waited in vain to be
	// known to listen.
	timer *time.Timer
	again bool
	deaf  bool
	// undoing is true while an attempt is undone that is not to run; it asks then.
	undoing bool
	// patience and swept are about the questions of this episode: how its
	// pauses grow, and the orphan that was released last.
	patience patience
	swept    string
	// ready and stop are those of the store's Listen; nil while the line does
	// not listen. told is when it last heard a hint.
	ready <-chan struct{}
	stop  func()
	told  time.Time

	// lease is the store's grant, in the states held, passing and freeing.
	lease *lease
	// running is the attempt that is known to run, here or in another process.
	running *Attempt
	// haunted holds the tokens of leases that were lost under holders who have
	// not come back yet, and what those run: their keys must not be deleted under
	// running code.
	haunted map[string]*Attempt
}

// lineOf returns the line of a key, a new one if need be.
func (e *Engine) lineOf(s *shard, key string) *line {
	l := s.lines[key]
	if l != nil {
		return l
	}
	if last := len(s.spare) - 1; last >= 0 {
		l = s.spare[last]
		s.spare[last] = nil
		s.spare = s.spare[:last]
	} else {
		l = &line{engine: e, shard: s}
		l.hear, l.hearReleased, l.firstLease.line = l.heard, l.released, l
	}
	l.key, l.doubt = key, errNoAnswer
	s.lines[key] = l
	return l
}

// spareLines is how many forgotten lines a shard keeps.
const spareLines = 16

// forget forgets the line, at rest. Nobody refers to it any more but holds that
// have ended and callers who are about to leave, which look at nothing but the
// shard, and renewals of leases that were lost.
func (l *line) forget() {
	s := l.shard
	delete(s.lines, l.key)
	l.life = life{}
	if l.firstLease.inFlight == 0 && len(s.spare) < spareLines {
		l.firstLease.tenure = tenure{} // which knows its last holder
		s.spare = append(s.spare, l)
	}
}

// begin starts an episode under a fresh token: the line asks the store for its
// first waiter. enqueue says that a take would not do.
func (l *line) begin(enqueue bool) {
	l.open(enqueue)
	l.ask()
}

func (l *line) open(enqueue bool) {
	l.start(l.engine.newToken())
	l.enqueue, l.contended, l.promised = enqueue, false, false
}

// resume starts an episode under a token that a release has put in line, or may
// have. The line looks for it after the pause.
func (l *line) resume(token string, pause time.Duration) {
	l.start(token)
	l.enqueue, l.joined = true, true
	l.pause(pause)
}

func (l *line) start(token string) {
	l.state = asking
	l.lease, l.rejoin, l.running = nil, "", nil
	l.token, l.ballot, l.joined = token, "", false
	l.deaf, l.patience, l.swept = false, patience{}, ""
}

// proceed goes on after a lease is gone: with the next episode if somebody
// waits, else to rest.
func (l *line) proceed(enqueue bool) {
	if l.first != nil {
		l.begin(enqueue)
		return
	}
	l.rest()
}

// rest ends an episode in which nobody waits any more: its token leaves the
// store's line, and the line is forgotten unless a lost holder is still to come
// back.
func (l *line) rest() {
	l.abandon()
	l.unlisten()
	l.state = idle
	l.token, l.rejoin = "", ""
	l.lease, l.running = nil, nil
	if len(l.haunted) == 0 {
		l.forget()
	}
}

// isHaunted reports whether the token is that of a lost lease whose holder has
// not come back.
func (l *line) isHaunted(token string) bool {
	_, lost := l.haunted[token]
	return lost
}

// haunt remembers a lease that was lost under a running holder.
func (l *line) haunt(lease *lease) {
	if l.haunted == nil {
		l.haunted = make(map[string]*Attempt)
	}
	l.haunted[lease.token] = lease.attempt
}

// exorcise forgets a haunted token: its holder came back.
func (l *line) exorcise(token string) {
	delete(l.haunted, token)
	if l.state == idle && len(l.haunted) == 0 {
		l.forget()
	}
}

// request returns the store's request for the line's key.
func (l *line) request(token string, r Request) store.Request {
	return store.Request{
		Key: l.key, Token: token, TTL: r.TTL, Bound: l.engine.boundOf(r.TTL), Claim: l.engine.claimOf(r.TTL),
	}
}
