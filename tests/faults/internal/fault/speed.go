package fault

import (
	"time"

	"github.com/redis/go-redis/v9"
)

// speedFaults returns faults that delete the counter of fencing numbers while clients take
// one lock at full speed: one client, several in one process, and several processes.
//
// A number must be above all numbers of earlier holders even if the counter was deleted:
// the counter then starts at the server's clock, in microseconds. So the counter must never
// be ahead of that clock. It gets ahead if grants are fast and each one reserves many
// numbers: with 65 numbers for each grant, from 15,385 grants of one key in a second.
//
// The fault fences-are-deleted cannot show that. Its clients take each of three locks at
// most some hundred times in a second: they pause between their turns, report each call,
// and reach the server through proxies. The counter is never ahead for longer than the 65
// µs after a grant, and no lock was granted again within that time.
//
// On a busy machine the clients of these faults are too slow as well. So the faults do not
// only wait for a number that is too low: they also compare the counter with the clock when
// they delete it.
func speedFaults() []Fault {
	faults := []Fault{
		{Name: "fences-are-deleted-at-full-speed-alone", FullSpeed: &Callers{Processes: 1, Clients: 1}},
		{Name: "fences-are-deleted-at-full-speed-in-one-process", FullSpeed: &Callers{Processes: 1, Clients: 4}},
		{Name: "fences-are-deleted-at-full-speed-across-processes", FullSpeed: &Callers{Processes: 3, Clients: 1}},
	}
	for i := range faults {
		faults[i].On = []Deployment{OnServer, OnSentinels, OnCluster}
		faults[i].Inject = repeat(1, deleteFences)
	}
	return faults
}

// The mean pause between two deletions is long enough for the counter to get ahead of the
// clock, and short enough for many deletions.
const (
	fenceDeletions = 120
	deletionPause  = 25 * time.Millisecond
)

// deleteFence deletes a counter of fencing numbers. It returns by how many microseconds the
// counter was ahead of the server's clock (0 or less if it was not), or nil if there is no
// counter.
const deleteFence = `
local last, now = redis.call('GET', KEYS[1]), redis.call('TIME')
redis.call('DEL', KEYS[1])
return last and tonumber(last) - (now[1] * 1000000 + now[2])`

// deleteFences deletes the counters of fencing numbers at random times. No lock is lost.
func deleteFences(s *System) {
	s.Helper()
	random := s.forkRandom()
	for range fenceDeletions {
		s.sleep(time.Duration(random.Int64N(int64(deletionPause))))
		s.await("a fence to delete", func() bool {
			deleted := false
			for _, key := range s.Keys {
				ahead, err := s.Admin.Eval(s.Context(), deleteFence, []string{companion(key, ":f")}).Int64()
				switch {
				case err == redis.Nil: //nolint:errorlint // as it comes
				case err != nil:
					s.Fatalf("delete the fence of %s: %v", key, err)
				default:
					deleted = true
					s.recordAhead(key, ahead)
				}
			}
			return deleted
		})
	}
}

// recordAhead records by how many microseconds a counter was ahead of the server's clock.
func (s *System) recordAhead(key string, ahead int64) {
	if s.CounterAhead != nil && ahead > 0 {
		s.CounterAhead(key, time.Duration(ahead)*time.Microsecond)
	}
}
