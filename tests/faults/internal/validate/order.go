package validate

import (
	"fmt"
	"slices"
	"time"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// overtakenCalls finds calls that waited for a key while later requests of other processes
// were granted it, although the queue is first come, first served.
//
// A process may hand its lease off to its own callers, and has places in the queue for all of
// them together. So only the first waiter of a process for leases of one limit is judged, and
// only while its process holds none of them. A request came later if the first call of its lease was made when
// the waiter had joined the queue, and if its process had no place from before.
//
// An exclusive waiter may be passed once: when a shared lease is granted a free key, the
// shared requests behind it in the queue are granted leases with it.
//
// A disruption may remove a waiter from the queue, and a key that expires is free for any
// call. So a wait in which anything was disrupted, or a lease may have expired, is not judged.
// Neither is a quorum: each of its servers has a queue of its own.
func overtakenCalls(s *summary) (found []Violation) {
	if s.Deployment == "quorum" {
		return nil
	}
	for _, key := range s.locks {
		if key.attempt {
			continue
		}
		for _, op := range s.calls[key] {
			if op.Kind != history.Lock || op.Return-op.Call < s.joinTime() || !s.isFirstWaiter(key, op) {
				continue
			}
			if l := s.overtaker(key, op); l != nil && !s.mayLoseItsPlace(op) && !s.mayExpire(key, op) {
				found = append(found, Violation{Check: checkOrder, Text: fmt.Sprintf(
					"%s was granted at %d, while %s waited, which was called %v before", callName(l.grant), l.grant.Return,
					callName(op), time.Duration(l.requested-op.Call))})
			}
		}
	}
	return found
}

// joinTime returns the longest time from a call to its place in the queue: that of two
// commands, since its process may have to subscribe first.
func (s *summary) joinTime() int64 { return 2*s.CommandTimeout + int64(schedulingDelay) }

// isFirstWaiter reports whether a call is the first waiter of its process for a lease of this
// limit, and the process holds no such lease meanwhile. Otherwise the call may wait for its
// own process, without a place in the queue.
func (s *summary) isFirstWaiter(key lock, op *history.Op) bool {
	for _, other := range s.calls[key] {
		if other.Call > op.Return {
			break
		}
		if other == op || other.Process != op.Process || other.Limit != op.Limit || other.Kind != history.Lock && other.Kind != history.Try {
			continue
		}
		if s.returnedAt(other) >= op.Call && other.Call <= op.Call {
			return false
		}
	}
	for _, l := range s.leases[key] {
		if l.grant != op && l.grant.Process == op.Process && l.grant.Limit == op.Limit && l.grant.Return <= op.Return && s.mayBeOutUntil(l) >= op.Call {
			return false
		}
	}
	return true
}

// overtaker returns the first later lease of another process that passed a waiter without
// reason, or nil.
func (s *summary) overtaker(key lock, op *history.Op) *lease {
	delay := s.delays(op)
	joined := op.Call + s.joinTime() + delay
	firstPassed := int64(never) // when the waiter was passed first
	passed := map[int]map[string]bool{}
	for _, l := range s.leases[key] {
		process := l.grant.Process
		if process == op.Process || l.requested <= joined || l.grant.Return+int64(schedulingDelay)+delay >= op.Return {
			continue
		}
		firstPassed = min(firstPassed, l.grant.Return)
		if !op.IsShared() && l.grant.IsShared() && l.grant.Return <= firstPassed+int64(schedulingDelay)+delay {
			continue
		}
		if passed[process] == nil {
			passed[process] = map[string]bool{}
		}
		passed[process][l.episode()] = true
		if len(passed[process]) > s.placesAt(key, process, joined) {
			return l
		}
	}
	return nil
}

// placesAt returns how many places in the queue a process may have had at a time: one for
// each call that waited. It gives them to its callers in the order of their calls, so a later
// call may get the place of one that was served by another lease of the process.
func (s *summary) placesAt(key lock, process int, moment int64) (n int) {
	for _, op := range s.calls[key] {
		if op.Process == process && op.Kind == history.Lock && op.Call <= moment && s.returnedAt(op) >= moment-s.joinTime() {
			n++
		}
	}
	return n
}

// mayLoseItsPlace reports whether anything was disrupted while a call waited. A machine that
// stalls only delays calls: see delays.
func (s *summary) mayLoseItsPlace(op *history.Op) bool {
	return s.isOverloadedOrDisrupted(op.Process, op.Call, op.Return) || s.mayBeDisrupted(op.Process, op.Call, op.Return)
}

// delays returns for how long the machine stalled while a call waited, or did not run its
// process.
func (s *summary) delays(op *history.Op) (sum int64) {
	overlap := func(from, to int64) int64 { return max(0, min(to, op.Return)-max(from, op.Call)) }
	for _, t := range s.Disruptions {
		if isStall(t) {
			sum += overlap(t.From, timeOrNever(t.To))
		}
	}
	for _, lag := range s.Lags {
		if lag.Process == op.Process {
			sum += overlap(lag.From, lag.To)
		}
	}
	return sum
}

// mayExpire reports whether a lease of the key may have expired while a call waited, because
// it was not released with success, or stayed for a minimal hold; or whether a call without a
// known result may have had a lease.
func (s *summary) mayExpire(key lock, op *history.Op) bool {
	for _, l := range s.leases[key] {
		if _, released := s.releasedBy(l); l.grant != op && !released && l.grant.Call <= op.Return && s.mayBeOutUntil(l) >= op.Call {
			return true
		}
	}
	return slices.ContainsFunc(s.calls[key], func(other *history.Op) bool {
		return other != op && isIndeterminate(other) && !s.gaveUp(other) && other.Call <= op.Return && after(s.returnedAt(other), s.mayExcludeFor(op, other)) >= op.Call
	})
}
