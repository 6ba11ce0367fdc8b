package crash

import (
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// A seat is a place of a service: there runs a process, and when it has crashed
// another one.
type seat struct {
	*site
	t      *testing.T
	proxy  *redistest.Proxy
	random *rand.Rand

	mu      sync.Mutex
	current *process
	left    int            // how many more of what it waits for make it crash
	by      string         // what that is: one of the moments, or "" if it is not to crash
	crashes map[string]int // by what
	late    func()         // lets a command of the dead go on, if not nil
}

// The moments at which a process is killed that the proxy does not see.
const (
	atVisit   = "a handler that comes in"
	atCharge  = "an effect"
	atReading = "an answer that is being read"
)

// moments are those at which a process is killed. With pick it is at a command,
// before Redis gets it or after it has. It is one of the first so many of its kind.
var moments = map[string]struct {
	within int
	pick   matcher
	lost   bool
}{
	"any command, lost":    {60, func([]string) bool { return true }, true},
	"any command, unheard": {60, func([]string) bool { return true }, false},
	"a begin, lost":        {20, isBegin, true},
	"a begin, unheard":     {20, isBegin, false},
	"a commit, lost":       {10, isCommit, true},
	"a commit, unheard":    {10, isCommit, false},
	"an abort, lost":       {3, isAbort, true},
	"an abort, unheard":    {3, isAbort, false},
	atVisit:                {10, nil, false},
	atCharge:               {10, nil, false},
	atReading:              {2, nil, false},
}

// fill puts a new process into the seat, and decides at which moment it will
// crash.
func (s *seat) fill() *process {
	s.t.Helper()
	p := s.open(s.t, s.proxy)
	s.mu.Lock()
	defer s.mu.Unlock()
	names := slices.Sorted(maps.Keys(moments))
	if s.framework.whole {
		names = slices.DeleteFunc(names, func(name string) bool { return name == atReading })
	}
	by := names[s.random.IntN(len(names))]
	m := moments[by]
	s.current, s.by, s.left = p, by, 1+s.random.IntN(m.within)
	counted := func(command []string) bool { return m.pick(command) && s.strike(by, p) }
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

// strike counts a moment down, and kills the process when it has come.
func (s *seat) strike(by string, p *process) (killed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by != by || s.current != p {
		return false
	}
	s.left--
	if s.left > 0 {
		return false
	}
	s.by = ""
	s.crashes[by]++
	p.kill()
	return true
}

// count adds the crashes of the seat, by what.
func (s *seat) count(to map[string]int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for by, n := range s.crashes {
		to[by] += n
	}
}

// spare makes sure that the process does not crash any more, and returns it.
func (s *seat) spare() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.by = ""
	return s.current
}

// process returns the process that is in the seat now.
func (s *seat) process() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}
