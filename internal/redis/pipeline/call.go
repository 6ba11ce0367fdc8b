package pipeline

import (
	"time"

	"github.com/reqlock/reqlock/internal/redis/command"
)

// A Reply is the result of one send of a command.
type Reply struct {
	// Value is the server's reply, and Err is its error, or the reason why there is no
	// reply: see command.Command.
	Value any
	Err   error
	// Sent is a time before the command was sent.
	Sent time.Time
	// Unconfirmed is why too few replicas have what the command has written. It is nil
	// where enough have it, and where no replicas have to acknowledge.
	Unconfirmed error
}

// isServed reports whether the reply shows that the server serves commands.
func (r Reply) isServed() bool { return r.Err == nil || !command.IsUnserved(r.Err) }

// An Operation makes the commands of a Call and receives its replies. The pipeline calls
// Settle, Late and Free on any goroutine, and holds no lock then. It calls Command and
// Fallback with the lane locked, so they must not block, nor send anything.
type Operation interface {
	// Command returns the command of the next send. sends is 1 for the first send of the
	// call, and 2 for the second.
	Command(sends int) command.Command
	// Fallback returns the command to send instead of one whose reply does not decide,
	// or nil if the reply decides.
	Fallback(sent command.Command, got Reply, sends int) command.Command
	// Settle receives the deciding reply, once. uncertain reports whether another send of
	// the call may have been applied, or may still be.
	Settle(got Reply, uncertain bool)
	// Late receives the reply to a send after the call was settled. The replies to both sends
	// may be late, at the same time.
	Late(got Reply)
	// Free says that the pipeline no longer refers to the call, which may be used again.
	// It is not called for each call.
	Free()
}

// A Call is one operation with its sends: one, and a second one if the first fails in
// transport or has no reply after half of the bound. So a call survives a lost reply. The
// first reply of the server decides.
type Call struct {
	Operation
	// Begun is the time of Begin.
	Begun time.Time
	// Key is the Redis key that selects the master in a cluster. Set it after Begin and
	// before Do, and leave it unchanged.
	Key []byte

	size         int  // bytes of the record that it carries
	offersInline bool // its caller waits for the reply anyhow
	callState
}

// A callState is the part of a call that Begin resets. The mutex of the lane guards it.
type callState struct {
	resendAfter time.Duration // half of the bound, and half of the replicas' time
	resendAt    time.Time     // when to send it again, unless its batch begins later
	deadline    time.Time

	sendCount    int   // sends begun
	unanswered   int   // sends without a reply, until the call is settled
	queued       int   // sends in the queue
	overdue      bool  // a batch with it was abandoned
	maybeApplied bool  // a send failed, and the server may have applied it
	failure      error // of the last send that failed
	settled      bool
	index        int    // in the lane's calls, from 1; 0 is not there
	inline       *batch // that runs on the goroutine of the call's caller; nil for none
	inlineUntil  time.Time
	firstSend    send // a second send is rare, so it is allocated
}

// A send is one command of a call.
type send struct {
	call    *Call
	command command.Command
	reply   Reply
}

// Begin starts a call, which ends after the bound at the latest. size is the length of the
// record that it carries, in bytes. inline says that the caller waits for the reply, so
// that Do may run the batch on the goroutine of the caller.
func (c *Call) Begin(to Operation, bound time.Duration, size int, inline bool) {
	now, half := time.Now(), bound/2
	c.Operation, c.Begun, c.Key, c.size, c.offersInline = to, now, nil, size, inline
	c.callState = callState{resendAfter: half, resendAt: now.Add(half), deadline: now.Add(bound)}
}

// addReplicaTime delays the second send by half of the time that replicas have to
// acknowledge the first.
func (c *Call) addReplicaTime(wait time.Duration) {
	c.resendAfter += wait / 2
	c.resendAt = c.Begun.Add(c.resendAfter)
}

// Clear drops the references of a call that is over to its command and its reply, which
// may be big.
func (c *Call) Clear() { c.firstSend = send{} }

// uncertain reports whether a send other than the answered one may have been applied, or
// may still be. A send in the queue is dropped when the call is settled.
func (s *callState) uncertain() bool { return s.maybeApplied || s.unanswered > s.queued }

// send returns the next send of the call.
func (c *Call) send() *send {
	c.sendCount++
	c.unanswered++
	s := &c.firstSend
	if c.sendCount > 1 {
		s = &send{}
	}
	s.call, s.command = c, c.Command(c.sendCount)
	return s
}

// A completion is a reply to deliver to a call once the lane is unlocked.
type completion struct {
	call            *Call
	reply           Reply
	uncertain, late bool
}

func (d *completion) deliver() {
	if d.late {
		d.call.Late(d.reply)
	} else {
		d.call.Settle(d.reply, d.uncertain)
	}
}

// settle settles the call and returns what to deliver.
func (c *Call) settle(r Reply) completion {
	c.settled = true
	return completion{call: c, reply: r, uncertain: c.uncertain()}
}

// isReusable reports whether nothing refers to the call any more after the completion was
// delivered: the call was settled by the reply to its only send.
func (d *completion) isReusable() bool { return !d.late && d.call.sendCount == 1 }
