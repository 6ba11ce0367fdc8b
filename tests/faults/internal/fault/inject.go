package fault

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

const (
	// awaitTimeout bounds the wait for what has to be seen of a fault.
	awaitTimeout = 30 * time.Second

	// pollInterval is the pause between two looks at something that is awaited.
	pollInterval = 2 * time.Millisecond
)

// A injector breaks something, and returns what mends it.
type injector func(s *System) (heal func())

// awaitGrants returns when leases are granted, as they are when all is well.
func (s *System) awaitGrants() {
	s.Helper()
	s.Workload.AwaitGrants(someGrants)
}

// runFor lets the clients work for between so many and so many TTLs.
func (s *System) runFor(least, most float64) {
	s.sleep(time.Duration((least + (most-least)*s.Random.Float64()) * float64(s.TTL)))
}

// await returns when something is to be seen, and fails the run if that takes too
// long.
func (s *System) await(what string, seen func() bool) {
	s.Helper()
	for deadline := time.Now().Add(awaitTimeout); !seen(); s.sleep(pollInterval) {
		if time.Now().After(deadline) {
			s.Fatalf("waited in vain for %s", what)
		}
	}
}

// forkRandom returns choices for what is tried as often as it takes: however often that is,
// those that follow in the play are the same.
func (s *System) forkRandom() *rand.Rand {
	return rand.New(rand.NewPCG(s.Random.Uint64(), s.Random.Uint64())) //nolint:gosec // they are to be repeated
}

// during marks a trouble, and a loss if there is one, for as long as do runs.
func (s *System) during(name string, lost Loss, do func()) {
	s.Helper()
	end := s.Disrupt(name, lost)
	do()
	end()
}

// repeat returns a play of several rounds, before and after which all is well.
func repeat(n int, round func(s *System)) func(s *System) {
	return func(s *System) {
		for range n {
			s.awaitGrants()
			round(s)
		}
		s.awaitGrants()
	}
}

// injectTwice returns a play in which something is broken twice, for between so many
// and so many TTLs.
func injectTwice(name string, least, most float64, inject injector) func(s *System) {
	return repeat(2, func(s *System) {
		s.during(name, nil, func() {
			heal := inject(s)
			s.runFor(least, most)
			heal()
		})
	})
}

// companion returns the name of what belongs to a lock: ":q" is its waiting line,
// ":f" its fence.
func companion(lock, suffix string) string {
	if strings.Contains(lock, "{") {
		return lock + suffix
	}
	return "{" + lock + "}" + suffix
}

// eachMaster does something to each server that holds data of its own.
func (s *System) eachMaster(do func(master redis.Cmdable) error) {
	s.Helper()
	for _, voter := range s.Quorum {
		if err := do(voter.Admin); err != nil {
			s.Fatalf("order to the voter %s: %v", voter.Addr(), err)
		}
	}
	if s.Quorum != nil {
		return
	}
	if err := redistest.EachMaster(s.Context(), s.Admin, do); err != nil {
		s.Fatalf("order to a master: %v", err)
	}
}

// command gives each master an order that it has to follow.
func (s *System) command(words ...any) {
	s.Helper()
	s.eachMaster(func(master redis.Cmdable) error {
		pipe := master.Pipeline()
		pipe.Do(s.Context(), words...)
		if _, err := pipe.Exec(s.Context()); err != nil {
			return fmt.Errorf("%v: %w", words, err)
		}
		return nil
	})
}

// errorReplies returns how often the masters have answered with an error of this class.
func (s *System) errorReplies(class string) int {
	s.Helper()
	return s.infoSum("errorstats", "errorstat_"+class, "count")
}

// rejectedCommands returns how often they did not even begin with a command of the locks.
func (s *System) rejectedCommands() int {
	s.Helper()
	total := 0
	for _, command := range []string{"set", "evalsha", "eval"} {
		total += s.infoSum("commandstats", "cmdstat_"+command, "rejected_calls")
	}
	return total
}

// infoSum adds up a number that the masters have in a section of what they tell of
// themselves.
func (s *System) infoSum(section, line, field string) int {
	s.Helper()
	total := 0
	s.eachMaster(func(master redis.Cmdable) error {
		info, err := master.Info(s.Context(), section).Result()
		for _, text := range strings.Split(info, "\r\n") {
			fields, found := strings.CutPrefix(text, line+":")
			for _, pair := range strings.Split(fields, ",") {
				if number, is := strings.CutPrefix(pair, field+"="); found && is {
					n, _ := strconv.Atoi(number)
					total += n
				}
			}
		}
		return err
	})
	return total
}
