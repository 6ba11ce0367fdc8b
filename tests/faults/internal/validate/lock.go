package validate

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// lockHistories finds the locks whose calls no single server could have answered in any
// order, if it grants each key to one exclusive lease at a time, or to shared leases within
// their limits.
//
// Unknown events are not operations of their own: the search would have to try each of them
// at every time until the end. They are properties of known leases and calls.
//
//   - A lease without a known end may be free from some time on: when its last known
//     validity ends, since the server keeps the key for longer; when data is lost; or when
//     a release was called whose effect is unknown. The model frees it when another lease
//     is granted, not earlier, which allows every possible order. The same holds for a
//     lease whose key stays locked for a minimal hold.
//   - A call without a known result may have held the key for a while. That only excludes
//     others, and only a refused Try shows it: see isRefusalPossible.
//   - Leases that are handed off within a process are one lease on the server. It stays
//     between them, and the limit counts when it is granted, not when it is handed off.
//   - A shared lease is out when the command is sent whose reply grants or renews it, from
//     which on it is valid for a TTL. The model grants it then, not earlier: many calls wait
//     at the same time, and the search would try each of their orders. The server may have
//     granted it earlier, and the command only confirmed it: see step.earlier.
//   - A stale lease is omitted, and the key is free from the loss on. Later fencing numbers
//     must still be higher.
//   - A higher fencing number ends all leases with lower ones. So it is not granted before all
//     steps of those leases: otherwise the search would find only later that one is left over,
//     and try each order of the steps between them.
//
// So each operation ends when its call returned, and the search is fast.
func lockHistories(s *summary) (found []Violation) {
	for _, key := range s.locks {
		if key.attempt {
			continue
		}
		found = append(found, linearize(s, checkLinearizability, key, keyModel(), s.lockSteps(key))...)
	}
	return found
}

// lockSteps returns the known steps of a key.
func (s *summary) lockSteps(key lock) (steps []*step) {
	ends := map[string]*step{} // the end of the last lease of each episode; nil if it is unknown
	for _, l := range s.leases[key] {
		if l.isStale() {
			continue
		}
		grant := &step{op: l.grant, kind: granting, lease: l.name, fence: l.grant.Fence, free: l.freeFrom(), episode: l.episode()}
		steps = append(steps, grant)
		end, follows := ends[grant.episode]
		if follows {
			grant.handedOff = true
			if end != nil {
				end.handsOff = true
			}
		}
		if l.grant.IsShared() {
			sent := min(l.grant.Return, l.grant.ValidUntil-l.ttl)
			grant.from = max(l.grant.Call, sent)
			if !follows {
				grant.allowFrom(s.mayBeGrantedFrom(l, sent))
			}
		}
		ends[grant.episode] = nil
		if l.isEnded() && !l.isKept() {
			end := &step{op: l.end, kind: ending, lease: l.name, fence: l.grant.Fence}
			steps = append(steps, end)
			ends[grant.episode] = end
		}
		for _, extend := range l.extends {
			if extend.Outcome == history.Done && extend.Return < l.freeFrom() && (l.end == nil || extend.Return < l.end.Call) {
				steps = append(steps, &step{op: extend, kind: holding, lease: l.name, fence: l.grant.Fence})
			}
		}
	}
	for i, op := range s.calls[key] {
		if op.Outcome == history.Busy && op.Kind == history.Try && !s.isRefusalPossible(key, i) {
			steps = append(steps, &step{op: op, kind: refusing})
		}
	}
	countBefore(steps)
	return steps
}

// countBefore sets the number of the steps before each grant with a fencing number.
func countBefore(steps []*step) {
	fenced := slices.DeleteFunc(slices.Clone(steps), func(one *step) bool { return one.fence == 0 })
	slices.SortFunc(fenced, func(a, b *step) int { return cmp.Compare(a.fence, b.fence) })
	for i, one := range fenced {
		one.before = i
		if i > 0 && one.fence == fenced[i-1].fence {
			one.before = fenced[i-1].before
		}
	}
}

// mayBeGrantedFrom returns the earliest time at which the server may have granted a shared lease
// that a command confirmed which was sent at a time.
//
// A process has one place in the queue for each of its calls that wait with the same limit. A lease
// that the server grants to any of these places goes to the call that has waited longest. So the
// place may be older than the call, if such calls waited without a pause since then. A place stays
// for a moment after the last call.
//
// Without a confirmation the server keeps the lease for the claim, or after a confirmation without
// a reply for a TTL.
func (s *summary) mayBeGrantedFrom(l *lease, sent int64) int64 {
	from, leaving := l.grant.Call, 2*s.CommandTimeout
	for _, other := range slices.Backward(s.calls[l.lock]) {
		same := other.Process == l.grant.Process && other.IsShared() && other.Limit == l.grant.Limit
		if same && other.Call < from && after(s.returnedAt(other), leaving) >= from {
			from = other.Call
		}
	}
	kept := s.Claim + leaving
	if s.mayBeAffected(l.grant.Process, sent-l.ttl, sent) {
		kept += l.ttl
	}
	return max(from, sent-kept)
}

// headGrace is for how long a waiter that is gone may stop shared leases behind it in the
// queue, in addition to the claim.
const headGrace = 1500 * time.Millisecond

// isRefusalPossible reports whether a Try may have been refused although no known lease
// excluded it. The cause may be an earlier call without a known result, which may have
// held the key until its TTL, or had it assigned; a waiter in the same process, which goes
// first; for a shared lease, any waiter, since a Try does not pass the head of the queue; a
// waiter to which a shared lease was assigned, and that has not confirmed it; a place in the
// queue that no caller needs any more; a stale lease; a command that the network delivered
// late, as those of clients that connect before the beginning; or, on a quorum, concurrent
// calls that split the votes. A call that was granted the key explains a refusal only while
// it holds the key, which the model checks.
func (s *summary) isRefusalPossible(key lock, call int) bool {
	op := s.calls[key][call]
	since := op.Call - s.Claim - s.TTL
	late := op.Call < s.Begun || s.isDisrupted(since, op.Return, func(t history.Disruption) bool {
		return isLongStall(t) || !isStall(t) && !strings.HasPrefix(t.Name, LostReply)
	})
	return late || slices.ContainsFunc(s.calls[key], func(other *history.Op) bool {
		if other == op || other.Kind != history.Lock && other.Kind != history.Try || other.Call > op.Return {
			return false
		}
		returned := s.returnedAt(other)
		waits := other.Kind == history.Lock && (other.Process == op.Process || op.IsShared() || other.IsShared()) && returned >= op.Call
		if op.IsShared() && other.Kind == history.Lock && returned >= op.Call-2*s.CommandTimeout && s.mayLeavePlace(key, other) {
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
	return s.Deployment == "quorum" && s.returnedAt(other) >= op.Call-2*s.CommandTimeout
}

// mayExcludeFor returns for how long after its end a call without a known result may
// exclude a Try. A call that gives up releases its grant at once if it can. Otherwise the
// key stays assigned, and then held, until it expires; and the head of the queue stops
// shared leases for a while.
func (s *summary) mayExcludeFor(try, op *history.Op) int64 {
	if s.gaveUp(op) {
		return 2 * s.CommandTimeout
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
	return gaveUp && !s.mayBeAffected(op.Process, op.Return-2*s.CommandTimeout, op.Return+2*s.CommandTimeout)
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
