package validate

import (
	"slices"
	"strings"
	"time"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// Stalled is the prefix of the name of a Disruption during which the machine itself did not
// run the processes in time.
const Stalled = "stalled"

// failoverTime is how long calls may fail after a disruption of several servers. The
// servers must agree on the next master, which takes a vote, and the nodes of a cluster
// exchange their state once in a second.
const failoverTime = 3 * time.Second

// redialInterval is the pause after which a client of go-redis dials a server again, after
// many failed attempts. Until then each call that needs a new connection fails at once with
// the last error.
const redialInterval = time.Second

// probeInterval is the longest pause between two probes of a server that does not reply.
const probeInterval = 500 * time.Millisecond

// noConnection is in the error of a call that needed a new connection and got none.
const noConnection = "dial tcp "

// overload is the fraction of a run, one in so many parts, that the machine may stall.
const overload = 20

// Overloaded reports whether the machine stalled for so much of the run that it was
// probably too slow at other times, too. Then the cause of a failed call is unknown, and
// failed calls are no violations.
func Overloaded(h *history.History) bool {
	var stalled int64
	for _, t := range h.Disruptions {
		if isStall(t) {
			stalled += max(0, min(timeOrNever(t.To), h.Ended)-max(t.From, h.Begun))
		}
	}
	return stalled > (h.Ended-h.Begun)/overload
}

// mayBeDisrupted reports whether a process may be affected by a disruption between two
// times, or shortly before them, or was killed or paused.
func (s *summary) mayBeDisrupted(process int, from, to int64) bool {
	return s.mayBeDisruptedBy(process, from, to, func(history.Disruption) bool { return true })
}

// mayBeDisruptedBy is mayBeDisrupted for the disruptions that match.
func (s *summary) mayBeDisruptedBy(process int, from, to int64, matches func(history.Disruption) bool) bool {
	for _, t := range s.Disruptions {
		if !isStall(t) && matches(t) && t.From <= to && after(s.redialUntil(process, t.To), s.recoveryTime()) >= from {
			return true
		}
	}
	for _, failure := range s.failures[process] {
		if failure.From <= to && after(failure.To, 2*s.CommandTimeout) >= from {
			return true
		}
	}
	return false
}

// redialUntil returns until when a process was affected by a disruption of a single server
// that had ended: go-redis still returned the earlier error of the dial. An error that was
// returned during another disruption does not count.
func (s *summary) redialUntil(process int, over int64) int64 {
	last := over
	if s.Deployment == "server" && over != 0 {
		for _, failed := range s.failedDials[process] {
			if failed <= over+int64(redialInterval)+2*s.CommandTimeout && !s.isDisrupted(failed, failed, isDeliberate) {
				last = max(last, failed)
			}
		}
	}
	return last
}

// mayBeSlow reports whether the machine may have been too slow between two times: a stall
// makes the current command fail, or the next one.
func (s *summary) mayBeSlow(from, to int64) bool {
	return s.overloaded || s.isDisrupted(from-s.CommandTimeout, after(to, s.CommandTimeout), isStall)
}

// lastCommands returns when the last two commands of a call began, at the earliest.
func (s *summary) lastCommands(op *history.Op) int64 {
	return max(op.Call, op.Return-2*s.CommandTimeout)
}

// hasLagged reports whether the machine did not run a process between two times, or shortly
// before them.
func (s *summary) hasLagged(process int, from, to int64) bool {
	return slices.ContainsFunc(s.Lags, func(lag history.Lag) bool {
		return lag.Process == process && lag.From <= to && lag.To >= from-s.CommandTimeout
	})
}

// isSlowForAll reports whether, between two times, a command of another process took at least half of
// the command timeout, and was sent twice, although that process ran: so the machine was too slow for
// the server or the network, which nothing else shows. A fault of the lock itself makes calls fail
// although those of other processes are fast.
func (s *summary) isSlowForAll(process int, from, to int64) bool {
	return slices.ContainsFunc(s.Ops, func(other history.Op) bool {
		isCommand := other.Outcome == history.Done && (other.Kind == history.Release || other.Kind == history.Extend)
		if !isCommand || other.Process == process || other.Call > to || other.Return < from || other.Return-other.Call < s.CommandTimeout/2 {
			return false
		}
		_, paused := s.pausedSince(other.Process, other.Call, other.Return)
		return !paused && !s.hasLagged(other.Process, other.Call, other.Return)
	})
}

// mayBeAffected reports whether a call of a process may be affected by anything.
func (s *summary) mayBeAffected(process int, from, to int64) bool {
	return s.mayBeDisrupted(process, from, to) || s.mayBeSlow(from, to)
}

// recoveryTime returns for how long calls may fail after a disruption: the current command
// fails, and one on a new connection is late. After an outage in which new calls were refused
// at once, the next probe comes first.
func (s *summary) recoveryTime() int64 {
	switch s.Deployment {
	case "server":
		if s.FailFast > 0 {
			return int64(probeInterval) + 2*s.CommandTimeout
		}
		return 2 * s.CommandTimeout
	case "quorum":
		return int64(redialInterval) + 2*s.CommandTimeout
	default:
		return int64(failoverTime)
	}
}

// after returns a time that is later by a duration. A time of 0 means never.
func after(moment, time int64) int64 {
	if moment == 0 || moment == never {
		return never
	}
	return moment + time
}

func isStall(t history.Disruption) bool { return strings.HasPrefix(t.Name, Stalled) }

// isDeliberate reports whether a disruption was injected.
func isDeliberate(t history.Disruption) bool { return !isStall(t) }
