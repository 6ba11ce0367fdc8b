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
	// patience bounds the wait for what has to be seen of a fault.
	patience = 30 * time.Second

	// look is the pause between two looks at something that is awaited.
	look = 2 * time.Millisecond
)

// A strike breaks something, and returns what mends it.
type strike func(s *Scene) (mend func())

// well returns when leases are granted, as they are when all is well.
func (s *Scene) well() {
	s.Helper()
	s.Crew.AwaitGrants(traffic)
}

// linger lets the clients work for between so many and so many TTLs.
func (s *Scene) linger(least, most float64) {
	s.pass(time.Duration((least + (most-least)*s.Random.Float64()) * float64(s.TTL)))
}

// await returns when something is to be seen, and fails the run if that takes too
// long.
func (s *Scene) await(what string, seen func() bool) {
	s.Helper()
	for deadline := time.Now().Add(patience); !seen(); s.pass(look) {
		if time.Now().After(deadline) {
			s.Fatalf("waited in vain for %s", what)
		}
	}
}

// aside returns choices for what is tried as often as it takes: however often that is,
// those that follow in the play are the same.
func (s *Scene) aside() *rand.Rand {
	return rand.New(rand.NewPCG(s.Random.Uint64(), s.Random.Uint64())) //nolint:gosec // they are to be repeated
}

// during marks a trouble, and a loss if there is one, for as long as do runs.
func (s *Scene) during(name string, lost Loss, do func()) {
	s.Helper()
	end := s.Trouble(name, lost)
	do()
	end()
}

// rounds returns a play of several rounds, before and after which all is well.
func rounds(n int, round func(s *Scene)) func(s *Scene) {
	return func(s *Scene) {
		for range n {
			s.well()
			round(s)
		}
		s.well()
	}
}

// lasting returns a play in which something is broken twice, for between so many
// and so many TTLs.
func lasting(name string, least, most float64, breaks strike) func(s *Scene) {
	return rounds(2, func(s *Scene) {
		s.during(name, nil, func() {
			mend := breaks(s)
			s.linger(least, most)
			mend()
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

// masters does something to each server that holds data of its own.
func (s *Scene) masters(do func(master redis.Cmdable) error) {
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

// order gives each master an order that it has to follow.
func (s *Scene) order(words ...any) {
	s.Helper()
	s.masters(func(master redis.Cmdable) error {
		pipe := master.Pipeline()
		pipe.Do(s.Context(), words...)
		if _, err := pipe.Exec(s.Context()); err != nil {
			return fmt.Errorf("%v: %w", words, err)
		}
		return nil
	})
}

// refused returns how often the masters have answered with an error of this class.
func (s *Scene) refused(class string) int {
	s.Helper()
	return s.count("errorstats", "errorstat_"+class, "count")
}

// rejected returns how often they did not even begin with a command of the locks.
func (s *Scene) rejected() int {
	s.Helper()
	total := 0
	for _, command := range []string{"set", "evalsha", "eval"} {
		total += s.count("commandstats", "cmdstat_"+command, "rejected_calls")
	}
	return total
}

// count adds up a number that the masters have in a section of what they tell of
// themselves.
func (s *Scene) count(section, line, field string) int {
	s.Helper()
	total := 0
	s.masters(func(master redis.Cmdable) error {
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
