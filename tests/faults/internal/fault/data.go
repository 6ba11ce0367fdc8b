package fault

import (
	"time"

	"github.com/redis/go-redis/v9"
)

// foreign is a value that is no token.
const foreign = "an operator was here"

// dataFaults returns the faults that another user of Redis causes by changing the data of
// locks.
func dataFaults() []Fault {
	return []Fault{
		{
			Name: "all-data-is-deleted", On: withOneCopy(),
			Inject: repeat(4, func(s *System) {
				s.during("all data is deleted", everything, func() {
					s.eachMaster(func(master redis.Cmdable) error { return master.FlushAll(s.Context()).Err() })
				})
				s.runFor(0.5, 1)
			}),
		},
		{
			Name: "lock-is-deleted", On: withOneCopy(),
			Inject: repeat(6, func(s *System) {
				s.takeAway("the lock is deleted", func(key string) bool { return s.Admin.Del(s.Context(), key).Val() == 1 })
				s.runFor(0.3, 0.6)
			}),
		},
		{
			Name: "lock-is-overwritten", On: withOneCopy(),
			Inject: repeat(3, func(s *System) {
				key := s.takeAway("the lock is overwritten", func(key string) bool {
					return s.Admin.SetArgs(s.Context(), key, foreign, redis.SetArgs{Mode: "XX"}).Val() == "OK"
				})
				s.during("the lock has a foreign value", nil, func() {
					s.runFor(0.5, 1.5)
					s.script(`return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1])`, key, foreign)
				})
			}),
		},
		{
			Name: "clock-jumps-forward", On: withOneCopy(),
			Inject: repeat(6, func(s *System) {
				s.takeAway("the lock expires at once", func(key string) bool {
					return s.Admin.PExpire(s.Context(), key, time.Millisecond).Val()
				})
				s.runFor(0.3, 0.6)
			}),
		},
		{
			Name: "clock-jumps-back", On: withOneCopy(),
			Inject: repeat(3, func(s *System) {
				s.during("the lock expires late", nil, func() {
					key := s.onHeldLock(func(key string) bool { return s.Admin.PExpire(s.Context(), key, 30*time.Second).Val() })
					s.runFor(0.5, 1)
					// No lease is longer than 3 TTLs, even if it was extended.
					s.script(`return redis.call('PTTL', KEYS[1]) > tonumber(ARGV[1]) and redis.call('PEXPIRE', KEYS[1], ARGV[1])`,
						key, (3 * s.TTL).Milliseconds())
				})
			}),
		},
		{Name: "fences-are-deleted", On: withOneCopy(), Inject: deleteCompanions("the fences are deleted", ":f")},
		{Name: "queues-are-deleted", On: withOneCopy(), Inject: deleteCompanions("the queues are deleted", ":q")},
	}
}

// deleteCompanions deletes a companion key of each lock, several times. That is no loss:
// the key of the lock itself stays.
func deleteCompanions(name, suffix string) func(s *System) {
	return repeat(2, func(s *System) {
		s.during(name, nil, func() {
			deleted := int64(0)
			s.await("something to delete", func() bool {
				for _, key := range s.Keys {
					deleted += s.Admin.Del(s.Context(), companion(key, suffix)).Val()
				}
				return deleted >= 5
			})
		})
	})
}

// takeAway applies do to a lock that is held, until do returns true, and returns the name
// of the lock. Only the data of that lock is lost, and only once the lock is held.
func (s *System) takeAway(name string, do func(key string) bool) (key string) {
	s.Helper()
	key = s.onHeldLock(func(key string) bool { return s.Admin.Exists(s.Context(), key).Val() == 1 })
	s.during(name, only(key), func() { s.await("a change of a held lock", func() bool { return do(key) }) })
	return key
}

// onHeldLock calls do with the name of a lock until do returns true, which it must do only
// if the lock is held. It returns the name.
func (s *System) onHeldLock(do func(key string) bool) (key string) {
	s.Helper()
	key = s.someKey()
	s.await("a lock that is held", func() bool { return do(key) })
	return key
}

func (s *System) script(text, key string, args ...any) {
	s.Helper()
	if err := s.Admin.Eval(s.Context(), text, []string{key}, args...).Err(); err != nil && err != redis.Nil { //nolint:errorlint // as it comes
		s.Fatalf("script on %s: %v", key, err)
	}
}

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
	inject := repeat(1, deleteFences)
	return on([]Deployment{OnServer, OnSentinels, OnCluster},
		Fault{Name: "fences-are-deleted-at-full-speed-alone", FullSpeed: &Callers{Processes: 1, Clients: 1}, Inject: inject},
		Fault{Name: "fences-are-deleted-at-full-speed-in-one-process", FullSpeed: &Callers{Processes: 1, Clients: 4}, Inject: inject},
		Fault{Name: "fences-are-deleted-at-full-speed-across-processes", FullSpeed: &Callers{Processes: 3, Clients: 1}, Inject: inject})
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
					if ahead > 0 {
						s.CounterAhead(key, time.Duration(ahead)*time.Microsecond)
					}
				}
			}
			return deleted
		})
	}
}
