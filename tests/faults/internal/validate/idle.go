package validate

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// idleKeys finds keys that stayed free for long although calls waited for them: a release
// did not serve the next waiter, which found the key only when it checked again by itself.
//
// A key is free if each waiter could be granted it: no exclusive lease may be out, and fewer
// shared leases than the smallest limit of a waiter. A wait in which anything was disrupted
// is not judged, and neither is a key without shared leases: package waiting tests how
// exclusive leases are handed off.
func idleKeys(s *summary) (found []Violation) {
	for _, key := range s.locks {
		if !slices.ContainsFunc(s.calls[key], (*history.Op).IsShared) {
			continue
		}
		if from, to, waiter := s.longestIdle(key); waiter != nil {
			found = append(found, Violation{Check: checkIdle, Text: fmt.Sprintf(
				"%s was free for %v from %d on, while %s waited", key.key, time.Duration(to-from), from, callName(waiter))})
		}
	}
	return found
}

// handOffTime is the longest time from the end of a lease to the next one: it takes a message
// and a command. A waiter checks by itself about once a second, which is later.
func (s *summary) handOffTime() int64 { return s.CommandTimeout + int64(schedulingDelay) }

// mayBeServedLate reports whether anything was disrupted or slow while a call waited.
func (s *summary) mayBeServedLate(op *history.Op) bool {
	return s.isOverloadedOrDisrupted(op.Process, op.Call, op.Return) || s.mayBeAffected(op.Process, op.Call, op.Return) || s.hasLagged(op.Process, s.lastCommands(op), op.Return)
}

// An occupancy is a call that waits, or a lease that may be out, between two times.
type occupancy struct {
	from, to int64
	op       *history.Op // of the call or of the grant
	waits    bool
}

// longestIdle returns the longest time for which a key was free although the same call
// waited, if that is too long.
func (s *summary) longestIdle(key lock) (from, to int64, waiter *history.Op) {
	all := s.occupancies(key)
	var moments []int64
	for _, one := range all {
		moments = append(moments, one.from, one.to)
	}
	slices.Sort(moments)
	freeSince := int64(0) // 0 while the key is not free
	var open []occupancy
	next := 0
	for _, now := range moments {
		for ; next < len(all) && all[next].from <= now; next++ {
			open = append(open, all[next])
		}
		for _, one := range open {
			since := max(freeSince, one.from, s.Begun) // before, all clients connect at once, which may take long
			if one.waits && freeSince != 0 && now-since > max(s.handOffTime(), to-from) && !s.mayBeServedLate(one.op) {
				from, to, waiter = since, now, one.op
			}
		}
		open = slices.DeleteFunc(open, func(one occupancy) bool { return one.to <= now })
		switch free := hasRoom(open); {
		case !free:
			freeSince = 0
		case freeSince == 0:
			freeSince = now
		}
	}
	return from, to, waiter
}

// occupancies returns the waits and the leases of a key, by their beginning.
func (s *summary) occupancies(key lock) (all []occupancy) {
	for _, op := range s.calls[key] {
		switch {
		case op.Kind == history.Lock && op.Return != 0:
			all = append(all, occupancy{op.Call, op.Return, op, true})
		case op.Kind != history.Lock && op.Kind != history.Try:
			continue
		}
		if isIndeterminate(op) { // it may have been granted the key when it ended
			end := s.returnedAt(op)
			all = append(all, occupancy{max(op.Call, end-2*s.CommandTimeout), after(end, s.mayExcludeFor(op, op)), op, false})
		}
	}
	for _, l := range s.leases[key] {
		from := max(l.grant.Call, l.grant.Return-s.handOffTime())
		all = append(all, occupancy{from, s.mayBeOutUntil(l), l.grant, false})
	}
	slices.SortStableFunc(all, func(a, b occupancy) int { return cmp.Compare(a.from, b.from) })
	return all
}

// releasedBy returns when the release of a lease has freed its place at the latest, and false
// if that is uncertain. A release whose context has ended takes effect soon after its call.
func (s *summary) releasedBy(l *lease) (latest int64, certain bool) {
	if l.end == nil || l.end.Kind != history.Release || l.grant.MinHold > 0 {
		return 0, false
	}
	soon := l.end.Call + 2*s.CommandTimeout
	switch {
	case l.isEnded():
		return l.end.Return, true
	case l.end.Outcome == history.Deadline && soon < min(l.knownValidity, l.lossFrom) && !s.mayBeAffected(l.grant.Process, l.end.Call, soon):
		return soon, true
	}
	return 0, false
}

// mayBeOutUntil returns the latest time at which a lease may be out: until it is released, if
// that is certain. Otherwise the lease expires a TTL after its last renewal.
func (s *summary) mayBeOutUntil(l *lease) int64 {
	if latest, certain := s.releasedBy(l); certain {
		return latest
	}
	last := min(s.Ended, s.killedAt(l.grant.Process), l.contextEnded)
	if l.end != nil {
		last = min(last, l.end.Call)
	}
	return max(l.knownValidity, last) + s.TTL + s.Claim + l.grant.MinHold
}

// hasRoom reports whether calls wait, and each of them could be granted the key.
func hasRoom(open []occupancy) bool {
	out, smallest, waiting := 0, 0, false
	for _, one := range open {
		switch {
		case one.waits:
			if n := capacity(one.op); !waiting || n < smallest {
				smallest = n
			}
			waiting = true
		case !one.op.IsShared():
			return false
		default:
			out++
		}
	}
	return waiting && out < smallest
}
