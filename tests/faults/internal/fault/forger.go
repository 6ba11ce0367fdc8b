package fault

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/store"
)

// forgerFaults returns the faults in which another user of Redis forges hints. The user
// needs only the rights to GET, LRANGE and PUBLISH: the value of a lock and each entry of
// its queue is a token, which contains the id of a process and a number that the process
// has used.
//
// A hint may make a process read Redis, and nothing else. So no disruption is declared
// while hints are forged: they excuse neither a second holder, nor a lost lease, nor an
// error.
//
// No other fault publishes a message: the others lose, delay and repeat what the processes
// send.
func forgerFaults() []Fault {
	return []Fault{
		{Name: "hints-are-forged", On: Deployments(), Inject: repeat(1, func(s *System) {
			s.forge(forgery{repeats: 3, most: 1 << 20, choose: nextNumbers})
		})},
		{
			// For some seconds a process retries the release of a token that it no longer
			// uses, if the server refuses the release. Forged hints must not start many of
			// these retries at once.
			Name: "hints-are-forged-and-writes-refused", On: singleServer(),
			Inject: repeat(1, func(s *System) {
				s.during("the server answers NOREPLICAS", nil, func() {
					heal := configure("min-replicas-to-write", "1")(s)
					s.forge(forgery{repeats: 1, most: 12000, choose: manyNumbers})
					heal()
				})
			}),
		},
	}
}

// A forgery describes the hints that are forged.
type forgery struct {
	// repeats is how often each hint is published. The second message reaches the process
	// while it still handles the first.
	repeats int
	// most is the largest number of hints, repeats included.
	most int
	// choose returns the numbers of the tokens of one round, for a process that has used a
	// number.
	choose func(random *rand.Rand, used uint64) []uint64
}

// Each round publishes some dozens of hints to one process: at most about 10,000 in a
// second to all processes together.
const (
	forgingTime = 3 * time.Second
	roundPause  = 2 * time.Millisecond
)

// nextNumbers returns the number that was seen last, the next ones, an old one, and a huge
// one that the process never uses.
func nextNumbers(random *rand.Rand, used uint64) []uint64 {
	const next = 6
	numbers := []uint64{random.Uint64N(used + 1), used + 1<<40 + random.Uint64N(1<<40)}
	for i := range uint64(next + 1) {
		numbers = append(numbers, used+i)
	}
	return numbers
}

// manyNumbers returns old numbers and huge ones.
func manyNumbers(random *rand.Rand, used uint64) (numbers []uint64) {
	for range 50 {
		numbers = append(numbers, random.Uint64N(used+1), used+1<<40+random.Uint64N(1<<40))
	}
	return numbers
}

// forge publishes forged hints to all processes that it has seen. It fails the run if no
// process receives any of them.
func (s *System) forge(f forgery) {
	s.Helper()
	random := s.forkRandom()
	var seen seenProcesses
	published, received := 0, int64(0)
	for over := time.Now().Add(forgingTime); published < f.most && time.Now().Before(over); s.sleep(roundPause) {
		server := s.Admin
		if s.Quorum != nil {
			server = s.Quorum[random.IntN(len(s.Quorum))].Admin
		}
		s.readTokens(server, &seen)
		if len(seen) == 0 {
			continue
		}
		target, key := seen[random.IntN(len(seen))], s.Keys[random.IntN(len(s.Keys))]
		pipe := server.Pipeline()
		var sent []*redis.IntCmd
		limit := target.limits[random.IntN(len(target.limits))]
		for _, number := range f.choose(random, target.used) {
			token := store.NewToken(target.process, limit, max(1, number))
			for range f.repeats {
				sent = append(sent, s.publish(pipe, target.process, key, token+" "+key))
			}
		}
		_, _ = pipe.Exec(s.Context()) // a server may be about to be replaced
		for _, one := range sent {
			published++
			received += one.Val()
		}
	}
	if received == 0 {
		s.Fatalf("no process received any of %d forged hints", published)
	}
}

// channelPrefix is the default prefix. The channel of a process is the prefix and the id of
// the process.
const channelPrefix = "reqlock:"

// publish publishes a message as the scripts do. In a Cluster the channel belongs to the
// key and the process, and is in the slot of the key. Otherwise it belongs to the process.
func (s *System) publish(pipe redis.Pipeliner, process, key, message string) *redis.IntCmd {
	if s.Cluster != nil {
		return pipe.SPublish(s.Context(), companion(key, ":"+process), message)
	}
	return pipe.Publish(s.Context(), channelPrefix+process, message)
}

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
