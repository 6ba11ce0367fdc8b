package fault

import (
	"regexp"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// A seenProcess is a client process that has a token in a lock or in a queue.
type seenProcess struct {
	process string
	used    uint64 // the highest number that was seen
}

// seenProcesses are in the order in which they were seen first.
type seenProcesses []seenProcess

// tokenPattern matches a token: the id of its process, and a number.
var tokenPattern = regexp.MustCompile(`^([0-9a-f]{32}):(\d+)$`)

// add records the process of a token. It ignores values that are no token.
func (v *seenProcesses) add(token string) {
	match := tokenPattern.FindStringSubmatch(token)
	if match == nil {
		return
	}
	number, err := strconv.ParseUint(match[2], 10, 64)
	if err != nil {
		return
	}
	i := slices.IndexFunc(*v, func(one seenProcess) bool { return one.process == match[1] })
	if i < 0 {
		*v = append(*v, seenProcess{match[1], number})
		return
	}
	(*v)[i].used = max((*v)[i].used, number)
}

// readTokens reads the tokens in all locks and in their queues. It ignores errors: the
// server may be about to be replaced.
func (s *System) readTokens(server redis.UniversalClient, seen *seenProcesses) {
	pipe := server.Pipeline()
	var values []*redis.StringCmd
	var lines []*redis.StringSliceCmd
	for _, key := range s.Keys {
		values = append(values, pipe.Get(s.Context(), key))
		lines = append(lines, pipe.LRange(s.Context(), companion(key, ":q"), 0, -1))
	}
	_, _ = pipe.Exec(s.Context())
	for i := range s.Keys {
		seen.add(values[i].Val())
		for _, token := range lines[i].Val() {
			seen.add(token)
		}
	}
}
