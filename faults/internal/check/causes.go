package check

import (
	"strings"
	"time"

	"github.com/reqlock/reqlock/faults/internal/history"
)

// Stalled is what the name of a Trouble begins with while the machine itself did
// not run as it should: nobody can be told in time then.
const Stalled = "stalled"

// failoverTime is for how long calls may still suffer from a trouble where
// several servers have to agree on what follows: a failover is voted on and heard
// of, and a cluster tells of itself once in a second.
const failoverTime = 3 * time.Second

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
	for _, t := range s.Troubles {
		if !isStall(t) && t.From <= to && after(t.To, s.aftermath()) >= from {
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

// slow reports whether the machine may have been too slow between two moments:
// what it stalled for makes a command fail that was under way, or comes next.
func (s *story) slow(from, to int64) bool {
	return s.overloaded || s.troubled(from-s.command(), after(to, s.command()), isStall)
}

// disturbed reports whether a call of a process may have suffered from anything.
func (s *story) disturbed(process int, from, to int64) bool {
	return s.broken(process, from, to) || s.slow(from, to)
}

// aftermath returns for how long after a trouble calls may still suffer from it:
// one command that was under way fails, and one over a new connection is late.
func (s *story) aftermath() int64 {
	if s.Deployment != "server" {
		return int64(failoverTime)
	}
	return 2 * s.command()
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
