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
const renewalTime = awaitTimeout / 6

// lateFaults are replies that come after those to later commands, which were on
// another connection.
func lateFaults() []Fault {
	return []Fault{{
		Name: "replies-to-renewals-are-late", On: allDeployments(), OneProcess: true,
		Inject: repeat(8, func(s *System) { s.during("the replies to renewals are late", nil, s.delayRenewalReply) }),
	}}
}

// delayRenewalReply makes the reply to a renewal of some lease so late that its client has
// nearly given up on it, and closes the connection of the next renewal of that
// lease, which mostly is the same one, sent again. What is sent after that is
// answered first. If nothing was, the reply is too late, and the next renewal has
// its turn: while a lease lives there are three.
func (s *System) delayRenewalReply() {
	s.Helper()
	path := onePath(s)[0].Commands
	sends := new(renewalSends)
	defer sends.end()
	path.HoldCommand(sends.record) // which holds none
	wait := renewalTime
	for n, tries := 0, 3; tries > 0; n, tries = sends.count(), tries-1 {
		release, late := path.HoldReply(sends.nth(n))
		path.DropReply(sends.nth(n+1), redistest.CloseConn)
		came := s.waitUpTo(wait, func() bool { return isClosed(late) })
		if came {
			s.runFor(0.2, 0.22) // its client waits for a quarter
		}
		overtaken := sends.count() > n+2
		if came && !overtaken {
			s.runFor(0.06, 0.08)
		}
		release()
		if !came || overtaken {
			return
		}
		wait = s.TTL / 4
	}
}

// waitUpTo waits for so long at most, and reports whether it was seen.
func (s *System) waitUpTo(most time.Duration, seen func() bool) bool {
	for deadline := time.Now().Add(most); !seen(); s.sleep(pollInterval) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// renewalSends are those of the renewals of one lease that fetch fencing numbers: of that
// lease of which there is one first.
type renewalSends struct {
	mu      sync.Mutex
	command []string  // which all of them have in common
	seen    []*string // where the words of each begin, which tells them apart
	over    bool
}

// record takes in a command, and is not true of any.
func (s *renewalSends) record(command []string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || !fetchesNumbers(command) || s.command != nil && !slices.Equal(command, s.command) {
		return false
	}
	s.command = command
	s.seen = append(s.seen, &command[0])
	return false
}

// nth returns what matches the send of that number.
func (s *renewalSends) nth(n int) func(command []string) bool {
	return func(command []string) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return !s.over && n < len(s.seen) && s.seen[n] == &command[0]
	}
}

func (s *renewalSends) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.seen)
}

// end is when no more of them are seen.
func (s *renewalSends) end() {
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
