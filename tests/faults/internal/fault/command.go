package fault

import (
	"slices"
	"sync/atomic"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// commandFaults are what happens to one command, or to the reply to it, again and
// again.
func commandFaults() []Fault {
	faults := []Fault{
		{Name: "replies-are-lost", Play: striking("a reply is lost", dropping(redistest.CloseConn))},
		{Name: "replies-never-come", Play: striking("a reply never comes", dropping(redistest.KeepConn))},
		{Name: "commands-are-late", Play: striking("a command is late", holding)},
		{Name: "batches-are-cut", Play: striking("a batch is cut", cuttingBatch)},
	}
	for i := range faults {
		faults[i].On = everywhere()
	}
	return faults
}

// striking returns a play in which something happens to one command after the
// other.
func striking(name string, strike func(s *Scene)) func(s *Scene) {
	return rounds(8, func(s *Scene) {
		s.during(name, nil, func() { strike(s) })
	})
}

// A shot hits one command of a lock, by whatever path it comes: SET, or a script,
// before which so many others have come.
type shot struct{ left atomic.Int64 }

func (s *Scene) shot() *shot {
	one := new(shot)
	one.left.Store(1 + s.Random.Int64N(8))
	return one
}

// matches is for the rules of a proxy.
func (o *shot) matches(command []string) bool {
	return redistest.Named("SET", "EVALSHA", "EVAL")(command) && o.left.Add(-1) == 0
}

// dropping returns what loses the reply to one command, and returns when it is
// lost.
func dropping(mode redistest.Mode) func(s *Scene) {
	return func(s *Scene) {
		one := s.shot()
		var dropped []<-chan struct{}
		for _, path := range all(s) {
			dropped = append(dropped, path.Commands.DropReply(one.matches, mode))
		}
		s.await("a lost reply", func() bool { return slices.ContainsFunc(dropped, happened) })
	}
}

// happened tells whether a channel is closed.
func happened(event <-chan struct{}) bool {
	select {
	case <-event:
		return true
	default:
		return false
	}
}

// holding keeps one command back for so long that its client has given up, and
// lets it go on then.
func holding(s *Scene) {
	one := s.shot()
	var held []<-chan struct{}
	var releases []func()
	for _, path := range all(s) {
		release, seen := path.Commands.HoldCommand(one.matches)
		held, releases = append(held, seen), append(releases, release)
	}
	s.await("a late command", func() bool { return slices.ContainsFunc(held, happened) })
	s.linger(1, 2)
	for _, release := range releases {
		release()
	}
}

// cuttingBatch cuts one to three commands in the midst, or the replies to them. If
// fewer come together than it waits for, the server gets none of them.
func cuttingBatch(s *Scene) {
	one := s.shot()
	size := 1 + s.Random.IntN(3)
	commands, replies := s.Random.IntN(size*300), redistest.Uncut
	if s.Random.IntN(2) == 0 {
		commands, replies = redistest.Uncut, s.Random.IntN(size*8)
	}
	for _, path := range all(s) {
		path.Commands.CutBatch(one.matches, size, commands, replies)
	}
	s.await("a batch to cut", func() bool { return one.left.Load() <= 0 })
}
