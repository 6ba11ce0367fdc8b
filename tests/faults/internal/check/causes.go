package check

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

// redialTime is after what time a client of go-redis tries again to connect to a server
// that it could not connect to many times. Until then whoever needs a new connection is
// told at once why the last one could not be had.
const redialTime = time.Second

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
	for _, t := range h.Troubles {
		if isStall(t) {
			stalled += max(0, min(orNever(t.To), h.Ended)-max(t.From, h.Begun))
		}
	}
	return stalled > (h.Ended-h.Begun)/overload
}

// broken reports whether something was broken on purpose between two moments that
// a process may suffer from, or so shortly before that it still may; or whether
// it died, or stood still.
func (s *story) broken(process int, from, to int64) bool {
	return s.brokenBy(process, from, to, func(history.Trouble) bool { return true })
}

// brokenBy is broken, of those troubles alone that a process may suffer from.
func (s *story) brokenBy(process int, from, to int64, hurts func(history.Trouble) bool) bool {
	for _, t := range s.Troubles {
		if !isStall(t) && hurts(t) && t.From <= to && after(s.redialed(process, t.To), s.aftermath()) >= from {
			return true
		}
	}
	for _, death := range s.deaths[process] {
		if death.From <= to && after(death.To, 2*s.command()) >= from {
			return true
		}
	}
	return false
}

// redialed returns until when a process was seen to suffer from a trouble on one server
// that was over: it was told why it could not connect before, though it can again. What
// it was told while something else was broken says nothing of the time before.
func (s *story) redialed(process int, over int64) int64 {
	last := over
	if s.Deployment == "server" && over != 0 {
		for _, told := range s.undialed[process] {
			if told <= over+int64(redialTime)+2*s.command() && !s.troubled(told, told, isDeliberate) {
				last = max(last, told)
			}
		}
	}
	return last
}

// slow reports whether the machine may have been too slow between two moments:
// what it stalled for makes a command fail that was under way, or comes next.
func (s *story) slow(from, to int64) bool {
	return s.overloaded || s.troubled(from-s.command(), after(to, s.command()), isStall)
}

// lagged reports whether the machine did not let the process of a call run during its
// last two commands, or so shortly before that another one was under way.
func (s *story) lagged(op *history.Op) bool {
	from := max(op.Call, op.Return-2*s.command()) - s.command()
	return slices.ContainsFunc(s.Lags, func(lag history.Lag) bool {
		return lag.Process == op.Process && lag.From <= op.Return && lag.To >= from
	})
}

// disturbed reports whether a call of a process may have suffered from anything.
func (s *story) disturbed(process int, from, to int64) bool {
	return s.broken(process, from, to) || s.slow(from, to)
}

// aftermath returns for how long after a trouble calls may still suffer from it:
// one command that was under way fails, and one over a new connection is late.
func (s *story) aftermath() int64 {
	switch s.Deployment {
	case "server":
		return 2 * s.command()
	case "quorum":
		return int64(redialTime) + 2*s.command()
	default:
		return int64(failoverTime)
	}
}

// command returns for how long the lock waits for the reply to one command.
func (s *story) command() int64 {
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

func isStall(t history.Trouble) bool { return strings.HasPrefix(t.Name, Stalled) }

// isDeliberate reports whether a trouble was made on purpose.
func isDeliberate(t history.Trouble) bool { return !isStall(t) }
