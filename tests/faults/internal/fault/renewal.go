package fault

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// renewalTime bounds the wait for a renewal that reserves fencing numbers. If all leases
// are short, there is none.
const renewalTime = awaitTimeout / 6

// lateFaults returns the fault in which a reply arrives after the replies to later
// commands, which use another connection.
func lateFaults() []Fault {
	return []Fault{{
		Name: "replies-to-renewals-are-late", On: allDeployments(), OneProcess: true,
		Inject: repeat(8, func(s *System) { s.during("the replies to renewals are late", nil, s.delayRenewalReply) }),
	}}
}

// delayRenewalReply delays the reply to a renewal until just before its timeout, and closes
// the connection of the next renewal of that lease, which is mostly the same renewal, sent
// again. A later renewal is then answered first. If there was none in time, the next
// renewal is delayed instead: a lease is renewed three times in a TTL.
func (s *System) delayRenewalReply() {
	s.Helper()
	path := onePath(s)[0].Commands
	sends := new(renewalSends)
	defer sends.end()
	path.HoldCommand(sends.record) // it holds no command
	wait := renewalTime
	for n, tries := 0, 3; tries > 0; n, tries = sends.count(), tries-1 {
		release, late := path.HoldReply(sends.nth(n))
		path.DropReply(sends.nth(n+1), redistest.CloseConn)
		came := s.waitUpTo(wait, func() bool { return suite.IsClosed(late) })
		if came {
			s.runFor(0.2, 0.22) // the command timeout is a quarter of a TTL
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

// waitUpTo waits until the condition holds, for at most that time. It reports whether the
// condition holds.
func (s *System) waitUpTo(most time.Duration, seen func() bool) bool {
	for deadline := time.Now().Add(most); !seen(); s.sleep(pollInterval) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// renewalSends records the renewals of one lease that reserve fencing numbers: of the lease
// that is renewed first.
type renewalSends struct {
	mu      sync.Mutex
	command []string  // the arguments, which all these renewals share
	seen    []*string // the address of the first argument identifies a send
	over    bool
}

// record records a command. It returns false, so that no rule applies to the command.
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

// nth returns a match for the send with that number.
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

// end stops the recording.
func (s *renewalSends) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
}

// fetchesNumbers reports whether a command is a renewal that reserves fencing numbers: a
// script with three keys, of which the last one is the counter, and three arguments.
func fetchesNumbers(command []string) bool {
	return redistest.Named("EVALSHA", "EVAL")(command) && len(command) == 9 && command[2] == "3" &&
		strings.HasSuffix(command[5], ":f")
}
