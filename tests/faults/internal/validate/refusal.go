package validate

import (
	"slices"
	"strings"
	"time"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// headGrace is for how long a waiter that is gone may stop shared leases behind it in the
// queue, in addition to the claim.
const headGrace = 1500 * time.Millisecond

// isRefusalPossible reports whether a Try may have been refused although no known lease
// excluded it. The cause may be an earlier call without a known result, which may have
// held the key until its TTL, or had it assigned; a waiter in the same process, which goes
// first; for a shared lease, any waiter, since a Try does not pass the head of the queue; a
// waiter to which a shared lease was assigned, and that has not confirmed it; a place in the
// queue that no caller needs any more; a stale lease; a command that the network delivered late; or, on a quorum, concurrent calls
// that split the votes. A call that was granted the key explains a refusal only while it
// holds the key, which the model checks.
func (s *summary) isRefusalPossible(key lock, call int) bool {
	op := s.calls[key][call]
	since := op.Call - s.Claim - s.TTL
	late := s.isDisrupted(since, op.Return, func(t history.Disruption) bool {
		return isLongStall(t) || !isStall(t) && !strings.HasPrefix(t.Name, LostReply)
	})
	return late || slices.ContainsFunc(s.calls[key], func(other *history.Op) bool {
		if other == op || other.Kind != history.Lock && other.Kind != history.Try || other.Call > op.Return {
			return false
		}
		returned := s.returnedAt(other)
		waits := other.Kind == history.Lock && (other.Process == op.Process || op.IsShared() || other.IsShared()) && returned >= op.Call
		if op.IsShared() && other.Kind == history.Lock && returned >= op.Call-2*s.commandTimeout() && s.mayLeavePlace(key, other) {
			return true
		}
		return waits || s.mayHaveSplitVotes(op, other) || isIndeterminate(other) && returned >= op.Call-s.mayExcludeFor(op, other)
	}) || slices.ContainsFunc(s.leases[key], func(l *lease) bool {
		gone := l.end != nil && l.end.Outcome == history.Done && l.end.Return < since
		return l.isStale() && l.grant.Return <= op.Return && !gone
	})
}

// mayLeavePlace reports whether a place in the queue may stay for a moment after a shared call
// was served: a lease of its process was handed off to it, or its process had a place for each
// of several calls that waited together.
func (s *summary) mayLeavePlace(key lock, op *history.Op) bool {
	if !op.IsShared() {
		return false
	}
	if l := s.byName[op.Lease]; l != nil && l.requested < op.Call {
		return true
	}
	return slices.ContainsFunc(s.calls[key], func(other *history.Op) bool {
		return other != op && other.Kind == history.Lock && other.Process == op.Process && other.Limit == op.Limit &&
			other.Call <= s.returnedAt(op) && s.returnedAt(other) >= op.Call
	})
}

// mayHaveSplitVotes reports whether a call on a quorum may have got votes that another call
// lacked: it was under way, or its votes were not yet released. Then none of the calls may
// have had a majority.
func (s *summary) mayHaveSplitVotes(op, other *history.Op) bool {
	return s.Deployment == "quorum" && s.returnedAt(other) >= op.Call-2*s.commandTimeout()
}

// mayExcludeFor returns for how long after its end a call without a known result may
// exclude a Try. A call that gives up releases its grant at once if it can. Otherwise the
// key stays assigned, and then held, until it expires; and the head of the queue stops
// shared leases for a while.
func (s *summary) mayExcludeFor(try, op *history.Op) int64 {
	if s.gaveUp(op) {
		return 2 * s.commandTimeout()
	}
	if try.IsShared() {
		return s.Claim + s.TTL + int64(headGrace)
	}
	return s.Claim + s.TTL
}

// gaveUp reports whether a call ended with its wait, and nothing kept it from leaving the
// queue and releasing its grant.
func (s *summary) gaveUp(op *history.Op) bool {
	gaveUp := op.Outcome == history.Deadline || op.Outcome == history.WaitTimeout
	return gaveUp && !s.mayBeAffected(op.Process, op.Return-2*s.commandTimeout(), op.Return+2*s.commandTimeout())
}

// LostReply is the prefix of the name of a Disruption that loses replies and delays no
// command.
const LostReply = "a reply "

// isIndeterminate reports whether a call may have been granted the key without a known
// result.
func isIndeterminate(op *history.Op) bool {
	switch op.Outcome {
	case history.None, history.Unavailable, history.Deadline, history.WaitTimeout, history.Failed:
		return true
	default:
		return false
	}
}
