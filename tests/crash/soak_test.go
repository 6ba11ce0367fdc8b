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
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

const (
	// soakEnv sets how long processes are killed at random, as in "2m".
	soakEnv = "REQLOCK_SOAK"
	// seedEnv sets the seed of the random choices. Timing differs between runs with one seed.
	seedEnv = "REQLOCK_SEED"
)

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

// A soak repeats requests while processes are killed.
type soak struct {
	*testbed
	supervisors []*supervisor
	seed        uint64
	over        time.Time
	quiet       chan struct{} // closed when no process is killed any more
	keys        atomic.Int64

	mu        sync.Mutex
	processes []*process
	jobs      []*job
}

// A job is a request that several clients repeat until they have a final answer.
type job struct {
	request
	resolves bool // the operator frees the key after an unknown outcome
	mu       sync.Mutex
	answers  []answer
}

// Two processes are killed and replaced at random. Clients repeat their requests until they
// have a final answer.
func TestProcessesAreKilledAtRandom(t *testing.T) {
	suite.Full(t, "kills processes at random")
	lasts, from := suite.Duration(t, soakEnv, 2*time.Second), seed(t)
	for name := range frameworks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Logf("%s=%d", seedEnv, from)
			s := &soak{testbed: newTestbed(t, name), seed: from, over: time.Now().Add(lasts), quiet: make(chan struct{})}
			s.run(t)
			s.check(t)
		})
	}
}

func (s *soak) run(t *testing.T) {
	t.Helper()
	s.ledger.always = s.onLedgerCall
	for i := range 2 {
		s.supervisors = append(s.supervisors, &supervisor{
			testbed: s.testbed, t: t, proxy: redistest.NewProxy(t, s.server.Addr()), random: s.source(i), crashes: map[string]int{},
		})
	}
	var crashing, asking sync.WaitGroup
	for _, supervisor := range s.supervisors {
		s.took(supervisor.restart())
		crashing.Go(func() { s.restartAfterCrashes(supervisor) })
	}
	for i := range keysAtATime {
		asking.Go(func() { s.askForKeys(s.source(10 + i)) })
	}
	asking.Wait()
	close(s.quiet)
	crashing.Wait()
	for _, supervisor := range s.supervisors {
		for supervisor.keepAlive().HasEnded() && !t.Failed() { // killed last of all
			s.took(supervisor.restart())
		}
	}
}

func (s *soak) source(of int) *rand.Rand { return rand.New(rand.NewPCG(s.seed, uint64(of))) }

func (s *soak) took(p *process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.processes = append(s.processes, p)
}

func (s *soak) restartAfterCrashes(supervisor *supervisor) {
	for {
		p := supervisor.process()
		select {
		case <-s.quiet:
			return
		case <-p.Done():
		}
		s.took(supervisor.restart())
	}
}

// onLedgerCall is the ledger's hook. Until the end it refuses one in eight of the first
// calls, so that the client has to try again.
func (s *soak) onLedgerCall(v ledgerCall) bool {
	select {
	case <-s.quiet:
		return true
	default:
	}
	by := atStart
	if v.Charge {
		by = atCharge
	}
	for _, supervisor := range s.supervisors {
		if p := supervisor.process(); p != nil && p.number == v.Process {
			supervisor.reach(by, p)
		}
	}
	return v.Charge || rand.IntN(8) > 0
}

// continues reports whether clients go on with another key: until the soak time is over,
// and up to 30 s longer on a machine so slow that no process has been killed yet.
func (s *soak) continues() bool {
	late := time.Since(s.over)
	return late < 0 || late < patience && len(s.crashes()) == 0
}

func (s *soak) crashes() map[string]int {
	all := map[string]int{}
	for _, supervisor := range s.supervisors {
		supervisor.count(all)
	}
	return all
}

func (s *soak) askForKeys(random *rand.Rand) {
	for s.continues() && !s.t.Failed() {
		e := &job{request: request{policy: rerun, key: fmt.Sprintf("soak-%d", s.keys.Add(1))}}
		if random.IntN(2) == 0 {
			e.policy, e.resolves = reject, random.IntN(2) == 0
		}
		if random.IntN(3) == 0 {
			e.extra = 10 * firstPart
		}
		s.mu.Lock()
		s.jobs = append(s.jobs, e)
		s.mu.Unlock()
		var clients sync.WaitGroup
		for range copies {
			choices := rand.New(rand.NewPCG(random.Uint64(), 0))
			clients.Go(func() {
				for range 2 { // for the answer, and for a replay
					s.askUntilFinal(e, e.request, choices)
				}
				other := e.request
				other.extra++
				s.askUntilFinal(e, other, choices)
			})
		}
		clients.Wait()
	}
}

func (s *soak) askUntilFinal(e *job, q request, random *rand.Rand) {
	for final := false; !final && !s.t.Failed(); {
		if time.Since(s.over) > 2*patience {
			s.t.Errorf("there is no final answer: %+v", q)
		}
		supervisor := s.supervisors[random.IntN(len(s.supervisors))]
		p := supervisor.process()
		q.reading, q.nowait = nil, random.IntN(4) == 0
		if q.extra > 0 && !s.framework.atomic && random.IntN(4) == 0 {
			q.reading = func(int) { supervisor.reach(atReading, p) }
		}
		a, err := s.ask(p, q)
		if err != nil {
			suite.Eventually(s.t, "a process that does not answer has ended", p.HasEnded)
			suite.Eventually(s.t, "the process is replaced", func() bool { return supervisor.process() != p })
			continue
		}
		if other := q.extra != e.extra; other && a.Fine || !other && a.Code == "mismatch" {
			s.t.Errorf("%+v got %v", q, a)
		}
		final = s.take(e, a)
	}
}

func (s *soak) take(e *job, a answer) (final bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answers = append(e.answers, a)
	switch {
	case a.Fine, a.Code == "mismatch":
		return true
	case a.Code == "outcome_unknown" && e.resolves:
		_ = s.forget(s.t.Context(), e.request) // fails if another client resolved it, or if it runs
		return false
	case a.Code == "outcome_unknown":
		return true
	case a.Code == "busy", a.Code == "unavailable", a.Code == "" && !a.Replayed:
		return false
	default:
		s.t.Errorf("%+v got %v", e.request, a)
		return true
	}
}
