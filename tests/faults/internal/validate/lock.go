package validate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// lockHistories finds the locks whose calls no single server could have answered in any
// order, if it grants each key to one lease at a time.
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
//   - A stale lease is omitted, and the key is free from the loss on. Later fencing numbers
//     must still be higher.
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
	for _, l := range s.leases[key] {
		if l.isStale() {
			continue
		}
		steps = append(steps, &step{op: l.grant, kind: granting, lease: l.name, fence: l.grant.Fence, free: l.freeFrom()})
		if l.isEnded() && !l.isKept() {
			steps = append(steps, &step{op: l.end, kind: ending, lease: l.name})
		}
		for _, extend := range l.extends {
			if extend.Outcome == history.Done && extend.Return < l.freeFrom() && (l.end == nil || extend.Return < l.end.Call) {
				steps = append(steps, &step{op: extend, kind: holding, lease: l.name})
			}
		}
	}
	for i, op := range s.calls[key] {
		if op.Outcome == history.Busy && op.Kind == history.Try && !s.isRefusalPossible(key, i) {
			steps = append(steps, &step{op: op, kind: refusing})
		}
	}
	return steps
}

// isRefusalPossible reports whether a Try may have been refused although no known lease
// held the key. The cause may be an earlier call without a known result, which may have
// held the key until its TTL, or had it assigned; a waiter in the same process, which goes
// first; a stale lease; a command that the network delivered late; or, on a quorum,
// concurrent calls that split the votes. A call that was granted the key explains a refusal
// only while it holds the key, which the model checks.
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
		waits := other.Kind == history.Lock && other.Process == op.Process && returned >= op.Call
		return waits || s.mayHaveSplitVotes(op, other) || isIndeterminate(other) && returned >= op.Call-s.mayExcludeFor(other)
	}) || slices.ContainsFunc(s.leases[key], func(l *lease) bool {
		gone := l.end != nil && l.end.Outcome == history.Done && l.end.Return < since
		return l.isStale() && l.grant.Return <= op.Return && !gone
	})
}

// mayHaveSplitVotes reports whether a call on a quorum may have got votes that another call
// lacked: it was under way, or its votes were not yet released. Then none of the calls may
// have had a majority.
func (s *summary) mayHaveSplitVotes(op, other *history.Op) bool {
	return s.Deployment == "quorum" && s.returnedAt(other) >= op.Call-2*s.commandTimeout()
}

// mayExcludeFor returns for how long after its end a call without a known result may
// exclude others. A call that gives up releases its grant at once if it can. Otherwise the
// key stays assigned, and then held, until it expires.
func (s *summary) mayExcludeFor(op *history.Op) int64 {
	gaveUp := op.Outcome == history.Deadline || op.Outcome == history.WaitTimeout
	if gaveUp && !s.mayBeAffected(op.Process, op.Return-2*s.commandTimeout(), op.Return+2*s.commandTimeout()) {
		return 2 * s.commandTimeout()
	}
	return s.Claim + s.TTL
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

// A keyState is the state of a key on a server, and the earliest possible time.
type keyState struct {
	holder string // the lease; "" if it is free
	free   int64  // the earliest time at which it may be free without an end
	fence  int64  // the last one
	now    int64
}

// keyModel returns the model of a key for Porcupine: its holder and the last fencing
// number.
func keyModel() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return keyState{} },
		Step: func(state, input, _ any) (bool, any) {
			return state.(keyState).step(input.(*step))
		},
		DescribeOperation: func(input, _ any) string { return input.(*step).String() },
		DescribeState: func(state any) string {
			key := state.(keyState)
			if key.holder == "" {
				return fmt.Sprintf("free, last fence %d", key.fence)
			}
			return fmt.Sprintf("%s holds it, fence %d", key.holder, key.fence)
		},
		DescribeOperationMetadata: describeStep,
	}
}

// step reports whether a step is possible now, and returns the next state.
func (k keyState) step(next *step) (bool, any) {
	k.now = max(k.now, next.op.Call)
	switch next.kind {
	case granting:
		if k.holder != "" {
			k.now = max(k.now, k.free)
		}
		if next.fence != 0 && next.fence <= k.fence {
			return false, nil
		}
		k.holder, k.free, k.fence = next.lease, next.free, max(k.fence, next.fence)
	case ending:
		if k.holder != next.lease {
			return false, nil
		}
		k.holder = ""
	case holding:
		if k.holder != next.lease {
			return false, nil
		}
	case refusing:
		if k.holder == "" {
			return false, nil
		}
	}
	return k.now <= next.op.Return, k
}
