package pipeline

import (
	"time"

	"github.com/reqlock/reqlock/internal/redis/command"
)

// A Reply is what one send of a command brought back.
type Reply struct {
	Value any
	Err   error
	Sent  time.Time
	// Unconfirmed is why replicas cannot be said to have what the command has
	// written, if they have to.
	Unconfirmed error
}

// A Operation says what a call sends, and is told what came of it.
type Operation interface {
	// Command returns the command of the next send.
	Command(sends int) command.Command
	// Fallback returns what to send after a reply that leaves the question open; nil
	// is nothing.
	Fallback(sent command.Command, got Reply, sends int) command.Command
	// Settle is told how the exchange ended, once.
	Settle(got Reply, uncertain bool)
	// Late is told what a send brought that was left behind.
	Late(got Reply)
	// Free takes the exchange back, for another transition.
	Free()
}

// A Call is a transition with its sends: one, and a second one when the
// first fails in transport, or has brought no reply in half of the bound, which
// is how a lost reply is survived. The first reply of the server decides.
type Call struct {
	Operation
	Begun  time.Time
	Key    []byte // by which it is routed
	size   int    // of what it carries, in bytes
	inline bool   // its caller waits for the answer anyhow
	callState
}

// A callState is how far an exchange has come. It is guarded by the mutex of its
// lane.
type callState struct {
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
	of      *Call
	command command.Command
	reply   Reply
}

// Begin makes the call one that begins now.
func (x *Call) Begin(to Operation, bound time.Duration, size int, inline bool) {
	now, half := time.Now(), bound/2
	x.Operation, x.Begun, x.Key, x.size, x.inline = to, now, nil, size, inline
	x.callState = callState{half: half, resendAt: now.Add(half), deadline: now.Add(bound)}
}

// allow gives the first send the time that replicas have to acknowledge it: what is
// left of the bound is shared by both.
func (x *Call) allow(wait time.Duration) {
	x.half += wait / 2
	x.resendAt = x.Begun.Add(x.half)
}

// Clear makes the call let go of what it has sent.
func (x *Call) Clear() { x.first = send{} }

// uncertain reports whether a send other than the answered one may have been
// applied, or may yet be.
func (c *callState) uncertain() bool { return c.blind || c.open > 0 }

// send begins a send.
func (x *Call) send() *send {
	x.sends++
	x.open++
	x.queued = true
	s := &x.first
	if x.sends > 1 {
		s = &send{}
	}
	s.of, s.command = x, x.Command(x.sends)
	return s
}

// A completion is what an exchange has to be told, unlocked.
type completion struct {
	of              *Call
	reply           Reply
	uncertain, late bool
}

func (n *completion) deliver() {
	if n.late {
		n.of.Late(n.reply)
	} else {
		n.of.Settle(n.reply, n.uncertain)
	}
}

// end settles the exchange.
func (x *Call) end(r Reply) completion {
	x.settled = true
	return completion{of: x, reply: r, uncertain: x.uncertain()}
}

// over reports whether nobody refers to the exchange any more, once it was told
// of its end by its first and only reply.
func (n *completion) over() bool { return !n.late && n.of.sends == 1 && n.of.open == 0 }
