package crash

import (
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/tests/internal/history"
)

// A supervisor runs a process and starts a new one after each crash. It is safe for
// concurrent use.
type supervisor struct {
	*testbed
	t      *testing.T
	proxy  *redistest.Proxy
	random *rand.Rand

	mu      sync.Mutex
	current *process
	killed  bool           // the current process was killed
	left    int            // how many more events of the kill point until the process is killed
	by      string         // the kill point; "" if the process is not to be killed
	crashes map[string]int // by kill point
	late    func()         // releases a command of a killed process, if not nil
}

// The kill points that the proxy cannot observe.
const (
	atStart   = "a handler that starts"
	atCharge  = "a charge"
	atReading = "a client that reads its answer"
)

// killPoints are the events at which a process is killed: at a command that pick picks,
// before Redis receives the command (lost) or after it (its reply is lost), or at an event
// outside the proxy. It is one of the first within events of its kind.
var killPoints = map[string]struct {
	within int
	pick   matcher
	lost   bool
}{
	"any command, lost":       {60, func([]string) bool { return true }, true},
	"any command, reply lost": {60, func([]string) bool { return true }, false},
	"a begin, lost":           {20, isBegin, true},
	"a begin, reply lost":     {20, isBegin, false},
	"a commit, lost":          {10, isCommit, true},
	"a commit, reply lost":    {10, isCommit, false},
	"an abort, lost":          {3, isAbort, true},
	"an abort, reply lost":    {3, isAbort, false},
	atStart:                   {10, nil, false},
	atCharge:                  {10, nil, false},
	atReading:                 {2, nil, false},
}

// restart starts a new process and chooses its kill point. The process before it must have been
// killed.
func (s *supervisor) restart() *process {
	s.t.Helper()
	p := s.start(s.t, s.proxy)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current != nil && !s.killed {
		s.t.Error("a process has ended by itself")
	}
	names := slices.Sorted(maps.Keys(killPoints))
	if s.framework.atomic {
		names = slices.DeleteFunc(names, func(name string) bool { return name == atReading })
	}
	by := names[s.random.IntN(len(names))]
	m := killPoints[by]
	s.current, s.killed, s.by, s.left = p, false, by, 1+s.random.IntN(m.within)
	counted := func(command []string) bool { return m.pick(command) && s.reach(by, p) }
	switch {
	case m.pick == nil:
	case m.lost:
		if s.late != nil && s.random.IntN(2) == 0 {
			s.late()
		}
		s.late, _ = s.proxy.HoldCommand(counted)
	default:
		s.proxy.DropReply(counted, redistest.CloseConn)
	}
	return p
}

// reach counts an event of a kill point, and kills the process at the chosen one.
func (s *supervisor) reach(by string, p *process) (killed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by != by || s.current != p {
		return false
	}
	s.left--
	if s.left > 0 {
		return false
	}
	s.by, s.killed = "", true
	s.crashes[by]++
	p.Kill()
	return true
}

func (s *supervisor) count(to map[string]int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for by, n := range s.crashes {
		to[by] += n
	}
}

// keepAlive makes sure that the current process is not killed any more, and returns it.
func (s *supervisor) keepAlive() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.by = ""
	return s.current
}

func (s *supervisor) process() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

// check checks all that was observed, and what is left in Redis.
func (s *soak) check(t *testing.T) {
	t.Helper()
	var replays, unknown, again int
	for _, e := range s.jobs {
		for _, supervisor := range s.supervisors {
			a, err := s.ask(supervisor.process(), e.request)
			if err != nil {
				t.Fatalf("%+v: %v", e.request, err)
			}
			s.take(e, a)
		}
		seen := s.observe(e.request, e.answers, s.processes...)
		s.wantNoViolations(e.request, seen)
		s.checkEnd(t, e, seen.Writes)
		for _, a := range e.answers {
			if a.Replayed {
				replays++
			}
		}
		for _, w := range seen.Writes {
			if w.Number == 2 {
				again++
			}
		}
		if seen.Freed() > 0 || e.answers[len(e.answers)-1].Code == "outcome_unknown" {
			unknown++
		}
	}
	crashes := s.crashes()
	for _, supervisor := range s.supervisors {
		supervisor.process().stop()
	}
	s.wantNoLocksLeft(t)
	t.Logf("%d keys, %d processes, crashes: %v; %d replays, %d keys with an unknown outcome, %d that ran again",
		len(s.jobs), len(s.processes), crashes, replays, unknown, again)
	if len(crashes) == 0 || replays == 0 {
		t.Error("no process was killed, or no answer was replayed")
	}
}

// checkEnd fails the test unless the last two answers match the record. After an unknown
// outcome an abort may arrive late: then the request has run for the first of the two.
func (s *soak) checkEnd(t *testing.T, e *job, writes []history.Op) {
	t.Helper()
	if len(writes) == 0 {
		t.Errorf("%+v: nothing happened", e.request)
		return
	}
	before, last := e.answers[len(e.answers)-2], e.answers[len(e.answers)-1]
	switch end := writes[len(writes)-1].Kind; {
	case end == history.Commit && before.Fine && last.Replayed:
	case end == history.Begin && e.policy == reject && before.Code == "outcome_unknown" && last.Code == before.Code:
	default:
		t.Errorf("%+v: the record ends with a %s, and the answers as %v and %v", e.request, end, before, last)
	}
}
