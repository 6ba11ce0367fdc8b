package fault

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// renewalTime is how long a renewal that fetches numbers is waited for: where leases
// are short there may be none.
const renewalTime = patience / 6

// lateFaults are replies that come after those to later commands, which were on
// another connection.
func lateFaults() []Fault {
	return []Fault{{
		Name: "replies-to-renewals-are-late", On: everywhere(), Crowd: true,
		Play: rounds(8, func(s *Scene) { s.during("the replies to renewals are late", nil, s.overtake) }),
	}}
}

// overtake makes the reply to a renewal of some lease so late that its client has
// nearly given up on it, and closes the connection of the next renewal of that
// lease, which mostly is the same one, sent again. What is sent after that is
// answered first. If nothing was, the reply is too late, and the next renewal has
// its turn: while a lease lives there are three.
func (s *Scene) overtake() {
	s.Helper()
	path := one(s)[0].Commands
	sends := new(sends)
	defer sends.end()
	path.HoldCommand(sends.see) // which holds none
	wait := renewalTime
	for n, tries := 0, 3; tries > 0; n, tries = sends.count(), tries-1 {
		release, late := path.HoldReply(sends.is(n))
		path.DropReply(sends.is(n+1), redistest.CloseConn)
		came := s.within(wait, func() bool { return happened(late) })
		if came {
			s.linger(0.2, 0.22) // its client waits for a quarter
		}
		overtaken := sends.count() > n+2
		if came && !overtaken {
			s.linger(0.06, 0.08)
		}
		release()
		if !came || overtaken {
			return
		}
		wait = s.TTL / 4
	}
}

// within waits for so long at most, and reports whether it was seen.
func (s *Scene) within(most time.Duration, seen func() bool) bool {
	for deadline := time.Now().Add(most); !seen(); s.pass(look) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// sends are those of the renewals of one lease that fetch fencing numbers: of that
// lease of which there is one first.
type sends struct {
	mu    sync.Mutex
	words []string  // which all of them have in common
	seen  []*string // where the words of each begin, which tells them apart
	over  bool
}

// see takes in a command, and is not true of any.
func (s *sends) see(command []string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || !fetchesNumbers(command) || s.words != nil && !slices.Equal(command, s.words) {
		return false
	}
	s.words = command
	s.seen = append(s.seen, &command[0])
	return false
}

// is returns what matches the send of that number.
func (s *sends) is(n int) func(command []string) bool {
	return func(command []string) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return !s.over && n < len(s.seen) && s.seen[n] == &command[0]
	}
}

func (s *sends) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.seen)
}

// end is when no more of them are seen.
func (s *sends) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
}

// fetchesNumbers reports whether a command is a renewal that fetches fencing
// numbers: three keys, of which the last is the fence, and three arguments.
func fetchesNumbers(command []string) bool {
	return redistest.Named("EVALSHA", "EVAL")(command) && len(command) == 9 && command[2] == "3" &&
		strings.HasSuffix(command[5], ":f")
}
