package fault

import (
	"time"

	"github.com/redis/go-redis/v9"
)

// foreign is what an operator writes into a lock.
const foreign = "an operator was here"

// dataFaults are what others do to the data of the locks.
func dataFaults() []Fault {
	return []Fault{
		{
			Name: "all-data-is-deleted", On: withOneCopy(), LosesData: true,
			Inject: repeat(4, func(s *System) {
				s.during("all data is deleted", everything, func() {
					s.eachMaster(func(master redis.Cmdable) error { return master.FlushAll(s.Context()).Err() })
				})
				s.runFor(0.5, 1)
			}),
		},
		{
			Name: "lock-is-deleted", On: withOneCopy(), LosesData: true,
			Inject: repeat(6, func(s *System) {
				s.takeAway("the lock is deleted", func(key string) bool { return s.Admin.Del(s.Context(), key).Val() == 1 })
				s.runFor(0.3, 0.6)
			}),
		},
		{
			Name: "lock-is-overwritten", On: withOneCopy(), LosesData: true,
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
			Name: "clock-jumps-forward", On: withOneCopy(), LosesData: true,
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
					// No lease is longer than that, not even one that was extended.
					s.script(`return redis.call('PTTL', KEYS[1]) > tonumber(ARGV[1]) and redis.call('PEXPIRE', KEYS[1], ARGV[1])`,
						key, (3 * s.TTL).Milliseconds())
				})
			}),
		},
		{Name: "fences-are-deleted", On: withOneCopy(), Inject: deleteCompanions("the fences are deleted", ":f")},
		{Name: "waiting-lines-are-deleted", On: withOneCopy(), Inject: deleteCompanions("the waiting lines are deleted", ":q")},
	}
}

// deleteCompanions returns a play in which what belongs to the locks is deleted again and
// again. It is no loss: who holds a lock is not written there.
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

// takeAway takes a lock away from who holds it, by trying until do returns true, and
// returns its name. Nothing but that is lost, and nothing before somebody holds it.
func (s *System) takeAway(name string, do func(key string) bool) (key string) {
	s.Helper()
	key = s.onHeldLock(func(key string) bool { return s.Admin.Exists(s.Context(), key).Val() == 1 })
	s.during(name, only(key), func() { s.await("a lock to take away", func() bool { return do(key) }) })
	return key
}

// onHeldLock tries to do something to a lock, until somebody holds it and do returns
// true, and returns the name of the lock.
func (s *System) onHeldLock(do func(key string) bool) (key string) {
	s.Helper()
	key = s.someKey()
	s.await("a lock that is held", func() bool { return do(key) })
	return key
}

// script runs a script on a lock.
func (s *System) script(text, key string, args ...any) {
	s.Helper()
	if err := s.Admin.Eval(s.Context(), text, []string{key}, args...).Err(); err != nil && err != redis.Nil { //nolint:errorlint // as it comes
		s.Fatalf("script on %s: %v", key, err)
	}
}
