package fault

import (
	"time"

	"github.com/redis/go-redis/v9"
)

// speedFaults delete the counter of fencing numbers while clients take one lock at full
// speed: one caller alone, several in one process, and several processes.
//
// A number must be above all numbers of earlier holders although the counter is gone: the
// counter then begins at the server's clock, in microseconds. So the counter must never be
// ahead of that clock. It gets ahead where grants are fast and each one reserves many
// numbers: with 65 numbers for each grant, from 15,385 grants of one key in a second on.
//
// The fault fences-are-deleted cannot show that. Its clients take each of three locks at
// most some hundred times in a second: they rest between their turns, report each call, and
// reach the server through proxies. The counter is never ahead for longer than the 65 µs
// after a grant, and nothing was granted again within them.
//
// On a busy machine the clients of these faults are too slow, too. So the faults do not
// wait for a number that is too low: they also look at the counter when they delete it.
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

// The measures of deletingFences. The pause is long enough for the counter to get ahead of
// the clock, and short enough for many deletions.
const (
	fenceDeletions = 120
	deletionPause  = 25 * time.Millisecond
)

// deleteFence deletes a counter of fencing numbers, and returns by how many microseconds it
// was ahead of the server's clock: 0 or less if it was not. It returns nil where there is
// no counter.
const deleteFence = `
local last, now = redis.call('GET', KEYS[1]), redis.call('TIME')
redis.call('DEL', KEYS[1])
return last and tonumber(last) - (now[1] * 1000000 + now[2])`

// deleteFences deletes the counters of fencing numbers at random moments. That loses no
// lock.
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
