package validate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// lockHistories finds the locks of which no order of the calls tells how one server,
// that gives each key to one lease at a time, could have answered them.
//
// What is not known is not made an operation of its own, which would have to be
// tried at every moment to the end of the history: it is said of the leases and
// calls that are known.
//
//   - A lease that is not known to have ended may be free from some moment on:
//     when its validity, as its holder last saw it, ends, since the server keeps
//     it for longer; when data is lost; or when a release was called whose effect
//     nobody heard of. It is freed in the model when somebody else is granted the
//     key, and not earlier: that explains whatever else would.
//   - A call that was not granted may have held the key for a while all the same,
//     if its reply was lost. That only keeps others out, and only a Try that was
//     refused shows it: see excused.
//   - A ghost, which was granted when a loss of data had begun that may have made
//     it one, is left out, and what it held before is free from then on. The
//     fences of those who come later must be greater all the same.
//
// So each operation ends when its call returned, and judging is quick.
func lockHistories(s *summary) (found []Violation) {
	for _, key := range s.locks {
		if key.attempt {
			continue
		}
		found = append(found, linearize(s, checkLinearizability, key, keyModel(), s.lockSteps(key))...)
	}
	return found
}

// lockSteps returns what is known to have happened to a key.
func (s *summary) lockSteps(key lock) (steps []*step) {
	for _, l := range s.leases[key] {
		if l.isStale() {
			continue
		}
		steps = append(steps, &step{op: l.grant, kind: granting, lease: l.name, fence: l.grant.Fence, free: l.freeFrom()})
		if l.isEnded() {
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

// isRefusalPossible reports whether a Try may have been refused although no lease that is
// known held the key: because of another call before it that was not told of its
// grant, which may have held the key until its end, or had it claimed; of one in
// its own process that waits, which goes first; of a ghost; of a command that
// the network still had; or of others who asked at the same time a quorum whose votes
// they split. Who was granted the key explains a refusal only by
// holding it, and that is judged.
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

// mayHaveSplitVotes reports whether a call of a quorum may have had votes that another one lacked:
// it was under way, or its votes may not all have been taken back. Then none of those
// who asked may have had a majority.
func (s *summary) mayHaveSplitVotes(op, other *history.Op) bool {
	return s.Deployment == "quorum" && s.returnedAt(other) >= op.Call-2*s.commandTimeout()
}

// mayExcludeFor returns for how long after its end an unheard call may keep others out.
// Who gives up undoes what it was granted at once, if it can; what is not undone
// is claimed, and then held, until it falls.
func (s *summary) mayExcludeFor(op *history.Op) int64 {
	gaveUp := op.Outcome == history.Deadline || op.Outcome == history.WaitTimeout
	if gaveUp && !s.mayBeAffected(op.Process, op.Return-2*s.commandTimeout(), op.Return+2*s.commandTimeout()) {
		return 2 * s.commandTimeout()
	}
	return s.Claim + s.TTL
}

// LostReply is what the name of a Trouble begins with that loses replies, and never
// makes a command arrive late.
const LostReply = "a reply "

// isIndeterminate reports whether a call may have been granted the key without being told.
func isIndeterminate(op *history.Op) bool {
	switch op.Outcome {
	case history.None, history.Unavailable, history.Deadline, history.WaitTimeout, history.Failed:
		return true
	default:
		return false
	}
}

// A keyState is what a server knows of a key, and what time it is at least.
type keyState struct {
	holder string // the lease; "" if it is free
	free   int64  // when it may be free without the holder having ended
	fence  int64  // the last one
	now    int64
}

// keyModel returns the model of a key: who holds it, and the last fence.
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

// step returns whether a step is possible now, and what follows.
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
