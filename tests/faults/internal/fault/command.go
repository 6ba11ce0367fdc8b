package fault

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// commandFaults returns the faults of one command or of the reply to it.
func commandFaults() []Fault {
	return on(Deployments(),
		Fault{Name: "replies-are-lost", Inject: onCommands("a reply is lost", dropReply(redistest.CloseConn))},
		Fault{Name: "replies-never-come", Inject: onCommands("a reply never comes", dropReply(redistest.KeepConn))},
		Fault{Name: "commands-are-late", Inject: onCommands("a command is late", holdCommand)},
		Fault{Name: "batches-are-cut", Inject: onCommands("a batch is cut", cutBatch)},
		Fault{
			// A reply arrives after the replies to later commands, which use another connection.
			Name: "replies-to-renewals-are-late", OneProcess: true,
			Inject: repeat(8, func(s *System) { s.during("the replies to renewals are late", nil, s.delayRenewalReply) }),
		})
}

// onCommands injects a failure of one command, eight times.
func onCommands(name string, strike func(s *System)) func(s *System) {
	return repeat(8, func(s *System) {
		s.during(name, nil, func() { strike(s) })
	})
}

// A commandMatch matches one command of a lock, on whichever path: a SET or a script, after
// a number of others.
type commandMatch struct{ left atomic.Int64 }

func (s *System) someCommand() *commandMatch {
	one := new(commandMatch)
	one.left.Store(1 + s.Random.Int64N(8))
	return one
}

func (o *commandMatch) matches(command []string) bool {
	return redistest.Named("SET", "EVALSHA", "EVAL")(command) && o.left.Add(-1) == 0
}

// dropReply loses the reply to one command, and returns when the reply is lost.
func dropReply(mode redistest.Mode) func(s *System) {
	return func(s *System) {
		one := s.someCommand()
		var dropped []<-chan struct{}
		for _, path := range allPaths(s) {
			dropped = append(dropped, path.DropReply(one.matches, mode))
		}
		s.await("a lost reply", func() bool { return slices.ContainsFunc(dropped, suite.IsClosed) })
	}
}

// holdCommand delays one command until its client has given up, and then delivers the
// command.
func holdCommand(s *System) {
	one := s.someCommand()
	var held []<-chan struct{}
	var releases []func()
	for _, path := range allPaths(s) {
		release, seen := path.HoldCommand(one.matches)
		held, releases = append(held, seen), append(releases, release)
	}
	s.await("a late command", func() bool { return slices.ContainsFunc(held, suite.IsClosed) })
	s.runFor(1, 2)
	for _, release := range releases {
		release()
	}
}

// cutBatch closes the connection within a batch of one to three commands, or within the
// replies to them. If the batch has fewer commands than expected, the server receives none
// of them.
func cutBatch(s *System) {
	one := s.someCommand()
	size := 1 + s.Random.IntN(3)
	commands, replies := s.Random.IntN(size*300), redistest.Uncut
	if s.Random.IntN(2) == 0 {
		commands, replies = redistest.Uncut, s.Random.IntN(size*8)
	}
	for _, path := range allPaths(s) {
		path.CutBatch(one.matches, size, commands, replies)
	}
	s.await("a batch to cut", func() bool { return one.left.Load() <= 0 })
}

// renewalTime bounds the wait for a renewal that reserves fencing numbers. If all leases
// are short, there is none.
const renewalTime = awaitTimeout / 6

// delayRenewalReply delays the reply to a renewal until just before its timeout, and closes
// the connection of the next renewal of that lease, which is mostly the same renewal, sent
// again. A later renewal is then answered first. If there was none in time, the next
// renewal is delayed instead: a lease is renewed three times in a TTL.
func (s *System) delayRenewalReply() {
	s.Helper()
	path := onePath(s)[0]
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
