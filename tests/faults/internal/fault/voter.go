package fault

import (
	"regexp"
	"strconv"
	"time"

	"github.com/reqlock/reqlock/tests/faults/internal/network"
)

// crashEmpty kills servers of a quorum, and brings them back empty. They are well when
// they vote again.
func crashEmpty(s *System) func() {
	for _, voter := range s.Quorum {
		voter.Kill()
	}
	return func() {
		s.restart()
		s.awaitQuarantine()
	}
}

// crashWithData kills servers of a quorum, and brings them back with what they had.
// They do not know that this is all, and vote as late as others do.
func crashWithData(s *System) func() {
	for _, voter := range s.Quorum {
		voter.Kill()
	}
	return func() {
		for _, voter := range s.Quorum {
			voter.RestartFromDisk()
		}
		s.awaitQuarantine()
	}
}

// restart brings servers of a quorum back empty.
func (s *System) restart() {
	s.Helper()
	for _, voter := range s.Quorum {
		voter.Restart()
	}
}

// uptime is how a server says for how many seconds it has run, begun ones included.
var uptime = regexp.MustCompile(`uptime_in_seconds:(\d+)`)

// awaitQuarantine returns when servers of a quorum have run for so long that they vote.
func (s *System) awaitQuarantine() {
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

// pauseServers makes servers of a quorum stand still.
func pauseServers(s *System) func() {
	for _, voter := range s.Quorum {
		voter.Pause()
	}
	return func() {
		for _, voter := range s.Quorum {
			voter.Resume()
		}
	}
}

// delay returns a strike that makes each way late by between so many milliseconds,
// for all.
func delay(least, most int) injector {
	return func(s *System) func() {
		latency := time.Duration(least+s.Random.IntN(most-least)) * time.Millisecond
		return impair(allPaths, func(p *network.Path) { p.Delay(latency, latency/4) })(s)
	}
}

// halfOpenAll returns a strike that swallows what goes in one direction, for all.
func halfOpenAll(direction network.Direction) injector {
	return impair(allPaths, func(p *network.Path) { p.HalfOpen(direction) })
}

// refuseAll refuses all connections.
func refuseAll(s *System) func() {
	paths := allPaths(s)
	for _, path := range paths {
		path.Down()
	}
	return func() {
		for _, path := range paths {
			path.Up()
		}
	}
}

// flapConnections closes all connections, again and again.
func flapConnections(s *System) func() {
	refuseAll(s)()
	return func() {
		for range 10 {
			refuseAll(s)()
			s.runFor(0.02, 0.1)
		}
	}
}
