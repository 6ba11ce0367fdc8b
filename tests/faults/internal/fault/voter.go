package fault

import (
	"regexp"
	"strconv"
	"time"

	"github.com/reqlock/reqlock/tests/faults/internal/network"
)

// crashEmpty kills servers of a quorum and restarts them without data. They are healthy
// when they vote again.
func crashEmpty(s *System) func() {
	for _, voter := range s.Quorum {
		voter.Kill()
	}
	return func() {
		s.restart()
		s.awaitQuarantine()
	}
}

// crashWithData kills servers of a quorum and restarts them with their data. The servers
// cannot know that the data is complete, so they are quarantined, too.
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

// restart restarts servers of a quorum without data.
func (s *System) restart() {
	s.Helper()
	for _, voter := range s.Quorum {
		voter.Restart()
	}
}

// uptime matches the uptime of a server in seconds, rounded up.
var uptime = regexp.MustCompile(`uptime_in_seconds:(\d+)`)

// awaitQuarantine returns when the servers have run for so long that they vote.
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

// pauseServers pauses servers of a quorum.
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

// delay returns an injector that delays all bytes of all paths by a random time between
// least and most milliseconds.
func delay(least, most int) injector {
	return func(s *System) func() {
		latency := time.Duration(least+s.Random.IntN(most-least)) * time.Millisecond
		return impair(allPaths, func(p *network.Path) { p.Delay(latency, latency/4) })(s)
	}
}

// halfOpenAll returns an injector that drops the bytes of one direction on all paths.
func halfOpenAll(direction network.Direction) injector {
	return impair(allPaths, func(p *network.Path) { p.HalfOpen(direction) })
}

// refuseAll makes servers refuse all connections.
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

// flapConnections closes all connections, several times.
func flapConnections(s *System) func() {
	refuseAll(s)()
	return func() {
		for range 10 {
			refuseAll(s)()
			s.runFor(0.02, 0.1)
		}
	}
}
