package fault

import (
	"regexp"
	"strconv"
	"time"

	"github.com/reqlock/reqlock/tests/faults/internal/network"
)

// crashing kills servers of a quorum, and brings them back empty. They are well when
// they vote again.
func crashing(s *Scene) func() {
	for _, voter := range s.Quorum {
		voter.Kill()
	}
	return func() {
		s.restart()
		s.serveQuarantine()
	}
}

// crashingOnly kills servers of a quorum, and brings them back with what they had.
// They do not know that this is all, and vote as late as others do.
func crashingOnly(s *Scene) func() {
	for _, voter := range s.Quorum {
		voter.Kill()
	}
	return func() {
		for _, voter := range s.Quorum {
			voter.RestartFromDisk()
		}
		s.serveQuarantine()
	}
}

// restart brings servers of a quorum back empty.
func (s *Scene) restart() {
	s.Helper()
	for _, voter := range s.Quorum {
		voter.Restart()
	}
}

// uptime is how a server says for how many seconds it has run, begun ones included.
var uptime = regexp.MustCompile(`uptime_in_seconds:(\d+)`)

// serveQuarantine returns when servers of a quorum have run for so long that they vote.
func (s *Scene) serveQuarantine() {
	s.Helper()
	for _, voter := range s.Quorum {
		s.await("the end of a quarantine", func() bool {
			found := uptime.FindStringSubmatch(voter.Admin.Info(s.Context(), "server").Val())
			if found == nil {
				return false
			}
			seconds, _ := strconv.Atoi(found[1])
			return time.Duration(seconds-1)*time.Second >= Quarantine(s.TTL)
		})
	}
}

// standing makes servers of a quorum stand still.
func standing(s *Scene) func() {
	for _, voter := range s.Quorum {
		voter.Pause()
	}
	return func() {
		for _, voter := range s.Quorum {
			voter.Resume()
		}
	}
}

// delayed returns a strike that makes each way late by between so many milliseconds,
// for all.
func delayed(least, most int) strike {
	return func(s *Scene) func() {
		latency := time.Duration(least+s.Random.IntN(most-least)) * time.Millisecond
		return poisoned(all, func(p *network.Path) { p.Delay(latency, latency/4) })(s)
	}
}

// deaf returns a strike that swallows what goes in one direction, for all.
func deaf(direction network.Direction) strike {
	return poisoned(all, func(p *network.Path) { p.HalfOpen(direction) })
}

// disconnected refuses all connections.
func disconnected(s *Scene) func() {
	paths := all(s)
	for _, path := range paths {
		path.Down()
	}
	return func() {
		for _, path := range paths {
			path.Up()
		}
	}
}

// flapping closes all connections, again and again.
func flapping(s *Scene) func() {
	disconnected(s)()
	return func() {
		for range 10 {
			disconnected(s)()
			s.linger(0.02, 0.1)
		}
	}
}
