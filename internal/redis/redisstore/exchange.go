package redisstore

import (
	"errors"
	"time"
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

// A recipient says what a call sends, and is told what came of it.
type recipient interface {
	// word returns the command of the next send.
	word(sends int) command
	// instead returns what to send after a reply that leaves the question open; nil
	// is nothing.
	instead(sent command, got reply, sends int) command
	// settle is told how the exchange ended, once.
	settle(got reply, uncertain bool)
	// late is told what a send brought that was left behind.
	late(got reply)
	// free takes the exchange back, for another transition.
	free()
}

// A call is a transition with its sends: one, and a second one when the
// first fails in transport, or has brought no reply in half of the bound, which
// is how a lost reply is survived. The first reply of the server decides.
type call struct {
	recipient
	begun  time.Time
	key    []byte // by which it is routed
	size   int    // of what it carries, in bytes
	inline bool   // its caller waits for the answer anyhow
	course
}

// A course is how far an exchange has come. It is guarded by the mutex of its
// lane.
type course struct {
	half     time.Duration // of the bound
	resendAt time.Time
	deadline time.Time

	sends    int  // sends begun
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
	of      *call
	command command
	reply   reply
}

// begin makes the call one that begins now.
func (x *call) begin(to recipient, bound time.Duration, size int, inline bool) {
	now, half := time.Now(), bound/2
	x.recipient, x.begun, x.key, x.size, x.inline = to, now, nil, size, inline
	x.course = course{half: half, resendAt: now.Add(half), deadline: now.Add(bound)}
}

// allow gives the first send the time that replicas have to acknowledge it: what is
// left of the bound is shared by both.
func (x *call) allow(wait time.Duration) {
	x.half += wait / 2
	x.resendAt = x.begun.Add(x.half)
}

// clear makes the call let go of what it has sent.
func (x *call) clear() { x.first = send{} }

// uncertain reports whether a send other than the answered one may have been
// applied, or may yet be.
func (c *course) uncertain() bool { return c.blind || c.open > 0 }

// send begins a send.
func (x *call) send() *send {
	x.sends++
	x.open++
	x.queued = true
	s := &x.first
	if x.sends > 1 {
		s = &send{}
	}
	s.of, s.command = x, x.word(x.sends)
	return s
}

// A notice is what an exchange has to be told, unlocked.
type notice struct {
	of              *call
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
func (x *call) end(r reply) notice {
	x.settled = true
	return notice{of: x, reply: r, uncertain: x.uncertain()}
}

// over reports whether nobody refers to the exchange any more, once it was told
// of its end by its first and only reply.
func (n *notice) over() bool { return !n.late && n.of.sends == 1 && n.of.open == 0 }
