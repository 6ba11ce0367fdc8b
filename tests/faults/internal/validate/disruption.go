package validate

import (
	"slices"
	"strings"
	"time"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// Stalled is what the name of a Trouble begins with while the machine itself did
// not run as it should: nobody can be told in time then.
const Stalled = "stalled"

// failoverTime is for how long calls may still suffer from a trouble where
// several servers have to agree on what follows: a failover is voted on and heard
// of, and a cluster tells of itself once in a second.
const failoverTime = 3 * time.Second

// redialInterval is after what time a client of go-redis tries again to connect to a server
// that it could not connect to many times. Until then whoever needs a new connection is
// told at once why the last one could not be had.
const redialInterval = time.Second

// noConnection is in the error of a call that needed a new connection and got none.
const noConnection = "dial tcp "

// overload is of how many parts of a run the machine may have stalled for one,
// for it to count as one on which processes were only late now and then.
const overload = 20

// Overloaded reports whether the machine stalled for so much of the run that it
// was too slow at other times too, unseen. Nobody can tell then whether a call
// failed for no other reason, and this is not judged.
func Overloaded(h *history.History) bool {
	var stalled int64
	for _, t := range h.Disruptions {
		if isStall(t) {
			stalled += max(0, min(timeOrNever(t.To), h.Ended)-max(t.From, h.Begun))
		}
	}
	return stalled > (h.Ended-h.Begun)/overload
}

// mayBeDisrupted reports whether something was broken on purpose between two moments that
// a process may suffer from, or so shortly before that it still may; or whether
// it died, or stood still.
func (s *summary) mayBeDisrupted(process int, from, to int64) bool {
	return s.mayBeDisruptedBy(process, from, to, func(history.Disruption) bool { return true })
}

// mayBeDisruptedBy is broken, of those troubles alone that a process may suffer from.
func (s *summary) mayBeDisruptedBy(process int, from, to int64, hurts func(history.Disruption) bool) bool {
	for _, t := range s.Disruptions {
		if !isStall(t) && hurts(t) && t.From <= to && after(s.redialUntil(process, t.To), s.recoveryTime()) >= from {
			return true
		}
	}
	for _, failure := range s.failures[process] {
		if failure.From <= to && after(failure.To, 2*s.commandTimeout()) >= from {
			return true
		}
	}
	return false
}

// redialUntil returns until when a process was seen to suffer from a trouble on one server
// that was over: it was told why it could not connect before, though it can again. What
// it was told while something else was broken says nothing of the time before.
func (s *summary) redialUntil(process int, over int64) int64 {
	last := over
	if s.Deployment == "server" && over != 0 {
		for _, told := range s.failedDials[process] {
			if told <= over+int64(redialInterval)+2*s.commandTimeout() && !s.isDisrupted(told, told, isDeliberate) {
				last = max(last, told)
			}
		}
	}
	return last
}

// mayBeSlow reports whether the machine may have been too slow between two moments:
// what it stalled for makes a command fail that was under way, or comes next.
func (s *summary) mayBeSlow(from, to int64) bool {
	return s.overloaded || s.isDisrupted(from-s.commandTimeout(), after(to, s.commandTimeout()), isStall)
}

// hasLagged reports whether the machine did not let the process of a call run during its
// last two commands, or so shortly before that another one was under way.
func (s *summary) hasLagged(op *history.Op) bool {
	from := max(op.Call, op.Return-2*s.commandTimeout()) - s.commandTimeout()
	return slices.ContainsFunc(s.Lags, func(lag history.Lag) bool {
		return lag.Process == op.Process && lag.From <= op.Return && lag.To >= from
	})
}

// mayBeAffected reports whether a call of a process may have suffered from anything.
func (s *summary) mayBeAffected(process int, from, to int64) bool {
	return s.mayBeDisrupted(process, from, to) || s.mayBeSlow(from, to)
}

// recoveryTime returns for how long after a trouble calls may still suffer from it:
// one command that was under way fails, and one over a new connection is late.
func (s *summary) recoveryTime() int64 {
	switch s.Deployment {
	case "server":
		return 2 * s.commandTimeout()
	case "quorum":
		return int64(redialInterval) + 2*s.commandTimeout()
	default:
		return int64(failoverTime)
	}
}

// commandTimeout returns for how long the lock waits for the reply to one command.
func (s *summary) commandTimeout() int64 {
	if s.CommandTimeout > 0 {
		return s.CommandTimeout
	}
	return s.TTL / 4 // of a history that does not say it
}

// after returns the moment some time after another, of which 0 is never.
func after(moment, time int64) int64 {
	if moment == 0 || moment == never {
		return never
	}
	return moment + time
}

func isStall(t history.Disruption) bool { return strings.HasPrefix(t.Name, Stalled) }

// isDeliberate reports whether a trouble was made on purpose.
func isDeliberate(t history.Disruption) bool { return !isStall(t) }
