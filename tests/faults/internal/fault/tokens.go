package fault

import (
	"regexp"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/store"
)

// A seenProcess is a client process that has a token in a lock or in a queue.
type seenProcess struct {
	process string
	used    uint64        // the highest number that was seen
	limits  []store.Limit // of the tokens that were seen
}

// seenProcesses are in the order in which they were seen first.
type seenProcesses []seenProcess

// processPattern matches the id of a process.
var processPattern = regexp.MustCompile(`^[0-9a-f]{32}$`)

// add records the process of a token. It ignores values that are no token.
func (v *seenProcesses) add(token string) {
	process, limit, number, ok := store.ParseToken(token)
	if !ok || !processPattern.MatchString(process) {
		return
	}
	i := slices.IndexFunc(*v, func(one seenProcess) bool { return one.process == process })
	if i < 0 {
		i = len(*v)
		*v = append(*v, seenProcess{process: process})
	}
	one := &(*v)[i]
	one.used = max(one.used, number)
	if !slices.Contains(one.limits, limit) {
		one.limits = append(one.limits, limit)
	}
}

// readTokens reads the tokens in all locks, in their queues and among their shared leases. It
// ignores errors: the server may be about to be replaced.
func (s *System) readTokens(server redis.UniversalClient, seen *seenProcesses) {
	pipe := server.Pipeline()
	var values []*redis.StringCmd
	var tokens []*redis.StringSliceCmd
	for _, key := range s.Keys {
		values = append(values, pipe.Get(s.Context(), key))
		tokens = append(tokens, pipe.LRange(s.Context(), companion(key, ":q"), 0, -1), pipe.ZRange(s.Context(), companion(key, ":s"), 0, -1))
	}
	_, _ = pipe.Exec(s.Context())
	for _, value := range values {
		seen.add(value.Val())
	}
	for _, some := range tokens {
		for _, token := range some.Val() {
			seen.add(token)
		}
	}
}
