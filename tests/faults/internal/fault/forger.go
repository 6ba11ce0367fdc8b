package fault

import (
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// forgerFaults are the hints that another user of Redis forges. The user needs no rights
// except GET, LRANGE and PUBLISH: a lock's value, and each entry of its line, is a token,
// which names its process and a number that the process has used.
//
// A hint may cause a look and nothing else. So no Trouble is declared while hints are
// forged: they excuse neither a second holder, nor a lost lease, nor an error.
//
// No fault before these ones published anything. The others lose, delay and repeat what
// the processes send, but none of them adds a message that no process has sent.
func forgerFaults() []Fault {
	return []Fault{
		{Name: "hints-are-forged", On: allDeployments(), Inject: repeat(1, func(s *System) {
			s.forge(forgery{repeats: 3, most: 1 << 20, choose: nextNumbers})
		})},
		{
			// A process tries for seconds to release a dead token where the server
			// refuses that. Forged hints must not make it do so for many tokens at once.
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

// A forgery says which hints are forged.
type forgery struct {
	// repeats is how often each hint is published: the second one reaches the process
	// while it still acts on the first.
	repeats int
	// most is how many hints are published at most, repeats included.
	most int
	// choose returns the numbers of the tokens that a round names, for a process that
	// was seen to use a number.
	choose func(random *rand.Rand, used uint64) []uint64
}

// The measures of a forgery. Each round publishes some dozens of hints to one process, so
// that all processes together get about 10,000 in a second at most.
const (
	forgingTime = 3 * time.Second
	roundPause  = 2 * time.Millisecond
)

// nextNumbers are the number that was seen last, those that the process uses next, an old
// one, and a huge one that it never uses.
func nextNumbers(random *rand.Rand, used uint64) []uint64 {
	const next = 6
	numbers := []uint64{random.Uint64N(used + 1), used + 1<<40 + random.Uint64N(1<<40)}
	for i := range uint64(next + 1) {
		numbers = append(numbers, used+i)
	}
	return numbers
}

// manyNumbers are old ones, and huge ones.
func manyNumbers(random *rand.Rand, used uint64) (numbers []uint64) {
	for range 50 {
		numbers = append(numbers, random.Uint64N(used+1), used+1<<40+random.Uint64N(1<<40))
	}
	return numbers
}

// forge publishes forged hints to all processes that it sees, one after the other. It fails
// the run if no process listens to any of them.
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
		for _, number := range f.choose(random, target.used) {
			for range f.repeats {
				token := target.process + ":" + strconv.FormatUint(number, 10)
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

// channelPrefix is that of core: the channel of a process is the prefix and its id.
const channelPrefix = "reqlock:"

// publish publishes a message as line.lua does: in a Cluster on the channel of the key and
// the process, which is in the slot of the key, else on the channel of the process.
func (s *System) publish(pipe redis.Pipeliner, process, key, message string) *redis.IntCmd {
	if s.Cluster != nil {
		return pipe.SPublish(s.Context(), companion(key, ":"+process), message)
	}
	return pipe.Publish(s.Context(), channelPrefix+process, message)
}
