package crash

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

const (
	// soakEnv says how long processes are killed at random, as in "2m".
	soakEnv = "REQLOCK_SOAK"
	// seedEnv repeats the choices of a run, as far as they decide its course.
	seedEnv = "REQLOCK_SEED"
)

// soakTime is how long this run lasts.
func soakTime(t *testing.T) time.Duration {
	t.Helper()
	lasts, err := time.ParseDuration(cmp.Or(os.Getenv(soakEnv), "2s"))
	if err != nil {
		t.Fatalf("%s: %v", soakEnv, err)
	}
	return lasts
}

// seed is where this run's choices come from.
func seed(t *testing.T) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(cmp.Or(os.Getenv(seedEnv), strconv.FormatUint(rand.Uint64(), 10)), 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", seedEnv, err)
	}
	return n
}

const (
	keysAtATime = 8
	copies      = 3 // of each request, at the same time
)

// A soak is clients that ask, and ask again, while the processes crash.
type soak struct {
	*site
	seats []*seat
	seed  uint64
	over  time.Time
	calm  chan struct{} // closed when nothing crashes any more
	keys  atomic.Int64

	mu        sync.Mutex
	processes []*process
	stories   []*errand
}

// An errand is a question that several clients have, until they have an answer.
type errand struct {
	question
	resolves bool // an outcome that is unknown is looked into, and the key freed
	mu       sync.Mutex
	answers  []answer
}

// Two processes are killed and replaced, at random. Clients ask until they have a
// final answer.
func TestProcessesAreKilledAtRandom(t *testing.T) {
	lasts, from := soakTime(t), seed(t)
	for name := range frameworks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Logf("%s=%d", seedEnv, from)
			s := &soak{site: newSite(t, name), seed: from, over: time.Now().Add(lasts), calm: make(chan struct{})}
			s.run(t)
			s.check(t)
		})
	}
}

// run lets the clients ask and the processes crash, until it is over.
func (s *soak) run(t *testing.T) {
	t.Helper()
	s.ledger.always = s.visited
	for i := range 2 {
		s.seats = append(s.seats, &seat{
			site: s.site, t: t, proxy: redistest.NewProxy(t, s.server.Addr()), random: s.source(i), crashes: map[string]int{},
		})
	}
	var crashing, asking sync.WaitGroup
	for _, seat := range s.seats {
		s.took(seat.fill())
		crashing.Go(func() { s.crash(seat) })
	}
	for i := range keysAtATime {
		asking.Go(func() { s.askForKeys(s.source(10 + i)) })
	}
	asking.Wait()
	for _, seat := range s.seats {
		seat.spare()
	}
	close(s.calm)
	crashing.Wait()
}

func (s *soak) source(of int) *rand.Rand { return rand.New(rand.NewPCG(s.seed, uint64(of))) }

func (s *soak) took(p *process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.processes = append(s.processes, p)
}

// crash lets process after process crash in a seat.
func (s *soak) crash(seat *seat) {
	for {
		p := seat.process()
		select {
		case <-s.calm:
			return
		case <-p.done:
		}
		s.took(seat.fill())
	}
}

// visited is the ledger's hook. Until the end one in eight has no effect, and is to
// try again.
func (s *soak) visited(v visit) bool {
	select {
	case <-s.calm:
		return true
	default:
	}
	by := atVisit
	if v.Charge {
		by = atCharge
	}
	for _, seat := range s.seats {
		if p := seat.process(); p != nil && p.number == v.Process {
			seat.strike(by, p)
		}
	}
	return v.Charge || rand.IntN(8) > 0
}

// goesOn reports whether another key is to be asked for: until it is over, and on a
// machine so slow that no process has crashed yet, for a while longer.
func (s *soak) goesOn() bool {
	late := time.Since(s.over)
	return late < 0 || late < patience && len(s.crashes()) == 0
}

// crashes counts the crashes of all seats, by what.
func (s *soak) crashes() map[string]int {
	all := map[string]int{}
	for _, seat := range s.seats {
		seat.count(all)
	}
	return all
}

// askForKeys asks for key after key until it is over.
func (s *soak) askForKeys(random *rand.Rand) {
	for s.goesOn() && !s.t.Failed() {
		e := &errand{question: question{policy: rerun, key: fmt.Sprintf("soak-%d", s.keys.Add(1))}}
		if random.IntN(2) == 0 {
			e.policy, e.resolves = reject, random.IntN(2) == 0
		}
		if random.IntN(3) == 0 {
			e.long = 10 * half
		}
		s.mu.Lock()
		s.stories = append(s.stories, e)
		s.mu.Unlock()
		var clients sync.WaitGroup
		for range copies {
			choices := rand.New(rand.NewPCG(random.Uint64(), 0))
			clients.Go(func() {
				for range 2 { // for the answer, and for a replay
					s.askUntilFinal(e, e.question, choices)
				}
				other := e.question
				other.long++
				s.askUntilFinal(e, other, choices)
			})
		}
		clients.Wait()
	}
}

// askUntilFinal asks now here, now there, until there is an answer that is final.
func (s *soak) askUntilFinal(e *errand, q question, random *rand.Rand) {
	for final := false; !final && !s.t.Failed(); {
		if time.Since(s.over) > 2*patience {
			s.t.Errorf("there is no final answer: %+v", q)
		}
		seat := s.seats[random.IntN(len(s.seats))]
		p := seat.process()
		q.reading, q.hasty = nil, random.IntN(4) == 0
		if q.long > 0 && !s.framework.whole && random.IntN(4) == 0 {
			q.reading = func(int) { seat.strike(atReading, p) }
		}
		a, err := s.ask(p, q)
		if err != nil {
			await(s.t, "a process that does not answer is dead", p.dead)
			await(s.t, "another one takes its seat", func() bool { return seat.process() != p })
			continue
		}
		if other := q.long != e.long; other && a.Fine || !other && a.Code == "mismatch" {
			s.t.Errorf("%+v got %v", q, a)
		}
		final = s.take(e, a)
	}
}

// take takes an answer in, and reports whether it is final.
func (s *soak) take(e *errand, a answer) (final bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answers = append(e.answers, a)
	switch {
	case a.Fine, a.Code == "mismatch":
		return true
	case a.Code == "outcome_unknown" && e.resolves:
		_ = s.operator.Resolve(s.t.Context(), s.framework.endpoint(e.policy, e.key)) // or another client does, or it runs
		return false
	case a.Code == "outcome_unknown":
		return true
	case a.Code == "busy", a.Code == "unavailable", a.Code == "" && !a.Replayed:
		return false
	default:
		s.t.Errorf("%+v got %v", e.question, a)
		return true
	}
}
