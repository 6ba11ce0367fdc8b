package redisstore

import (
	"errors"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// errNoReply is the fault of a command that outlived its bound.
var errNoReply = errors.New("no reply within the command timeout")

// A reply is what one send of a command brought back.
type reply struct {
	value any
	err   error
	sent  time.Time
	// unconfirmed is why replicas cannot be said to have what the command has
	// written, if they have to.
	unconfirmed error
}

// A recipient is told what came of an exchange.
type recipient interface {
	// settle is told how the exchange ended, once.
	settle(got reply, uncertain bool)
	// late is told what a send brought that was left behind.
	late(got reply)
	// free takes the exchange back, for another transition.
	free()
}

// An exchange is a transition with its sends: one, and a second one when the
// first fails in transport, or has brought no reply in half of the bound, which
// is how a lost reply is survived. The first reply of the server decides.
type exchange struct {
	recipient
	store   *Store
	request store.Request
	begun   time.Time
	words
	course
}

// A course is how far an exchange has come. It is guarded by the mutex of its
// lane.
type course struct {
	half     time.Duration // of the bound
	resendAt time.Time
	deadline time.Time

	sends    int  // sends begun
	brief    bool // it has a brief form that was not found wanting
	open     int  // sends without a reply yet
	queued   bool // a send has not left yet
	overdue  bool // half of the bound is over
	blind    bool // a send failed in a way that does not say whether it was applied
	settled  bool
	position int    // among the lane's exchanges, from 1; 0 once settled
	led      *batch // on the goroutine of the caller, until
	ledUntil time.Time
	first    send // the second one is rare
}

// A send is one command on its way.
type send struct {
	of      *exchange
	command command
	reply   reply
}

// begin makes the exchange one that begins now.
func (x *exchange) begin(s *Store, to recipient, r *store.Request) {
	now, half := time.Now(), r.Bound/2
	x.recipient, x.store, x.request, x.begun = to, s, *r, now
	x.course = course{half: half, resendAt: now.Add(half), deadline: now.Add(r.Bound)}
}

// allow gives the first send the time that replicas have to acknowledge it: what is
// left of the bound is shared by both.
func (x *exchange) allow(wait time.Duration) {
	x.half += wait / 2
	x.resendAt = x.begun.Add(x.half)
}

// clear makes the exchange let go of what it was about, which may be big.
func (x *exchange) clear() {
	x.request, x.first = store.Request{}, send{}
	x.fingerprint.buffer, x.result.buffer = nil, nil
}

// uncertain reports whether a send other than the answered one may have been
// applied, or may yet be.
func (c *course) uncertain() bool { return c.blind || c.open > 0 }

// send begins a send.
func (x *exchange) send() *send {
	x.sends++
	x.open++
	x.queued = true
	s := &x.first
	if x.sends > 1 {
		s = &send{}
	}
	s.of, s.command = x, x.word()
	return s
}

// A notice is what an exchange has to be told, unlocked.
type notice struct {
	of              *exchange
	reply           reply
	uncertain, late bool
}

func (n *notice) tell() {
	if n.late {
		n.of.late(n.reply)
	} else {
		n.of.settle(n.reply, n.uncertain)
	}
}

// end settles the exchange.
func (x *exchange) end(r reply) notice {
	x.settled = true
	return notice{of: x, reply: r, uncertain: x.uncertain()}
}

// over reports whether nobody refers to the exchange any more, once it was told
// of its end by its first and only reply.
func (n *notice) over() bool { return !n.late && n.of.sends == 1 && n.of.open == 0 }
