package fault

import (
	"slices"
	"sync/atomic"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// commandFaults returns the faults of one command or of the reply to it.
func commandFaults() []Fault {
	faults := []Fault{
		{Name: "replies-are-lost", Inject: onCommands("a reply is lost", dropReply(redistest.CloseConn))},
		{Name: "replies-never-come", Inject: onCommands("a reply never comes", dropReply(redistest.KeepConn))},
		{Name: "commands-are-late", Inject: onCommands("a command is late", holdCommand)},
		{Name: "batches-are-cut", Inject: onCommands("a batch is cut", cutBatch)},
	}
	for i := range faults {
		faults[i].On = allDeployments()
	}
	return faults
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
			dropped = append(dropped, path.Commands.DropReply(one.matches, mode))
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
		release, seen := path.Commands.HoldCommand(one.matches)
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
		path.Commands.CutBatch(one.matches, size, commands, replies)
	}
	s.await("a batch to cut", func() bool { return one.left.Load() <= 0 })
}
