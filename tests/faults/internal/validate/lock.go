package validate

import (
	"slices"

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
			end := &step{op: l.end, kind: ending, lease: l.name}
			steps = append(steps, end)
			ends[grant.episode] = end
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
	from, leaving := l.grant.Call, 2*s.commandTimeout()
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
