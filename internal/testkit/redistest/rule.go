package redistest

import (
	"slices"
	"strings"
	"sync"
)

// Mode is what the client sees when DropReply drops a reply.
type Mode int

const (
	// CloseConn closes the client's connection instead of the reply: the
	// client knows at once that it does not know.
	CloseConn Mode = iota

	// KeepConn leaves the connection open, and nothing comes on it any more:
	// the client has to give up on its own.
	KeepConn
)

// Named returns a matcher, for DropReply and HoldCommand, of all commands with
// one of these names in any case. It is safe for concurrent use.
func Named(names ...string) func(command []string) bool {
	return func(command []string) bool {
		return slices.ContainsFunc(names, func(name string) bool {
			return strings.EqualFold(name, command[0])
		})
	}
}

// rule is a fault that waits for its command. It is used up by one command.
type rule struct {
	match    func(command []string) bool
	mode     Mode          // of a dropped reply
	released chan struct{} // of a held command or reply: closed when it may go on
	happened chan struct{} // closed when the fault has taken place
	batch    *batch        // of a cut
}

// rules are the faults that wait. They are safe for concurrent use.
type rules struct {
	mu    sync.Mutex
	holds []*rule
	lates []*rule
	drops []*rule
	cuts  []*rule
}

// add makes a rule wait in list, which is one of the fields of r.
func (r *rules) add(list *[]*rule, waiting *rule) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*list = append(*list, waiting)
}

// take removes and returns the oldest rule in list that matches, or nil. The
// lock is held while match runs: so it needs no lock of its own.
func (r *rules) take(list *[]*rule, command []string) *rule {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(*list, func(waiting *rule) bool { return waiting.match(command) })
	if i < 0 {
		return nil
	}
	taken := (*list)[i]
	*list = slices.Delete(*list, i, i+1)
	return taken
}

// DropReply loses the reply to the next command for which match returns true:
// the server executes the command, the client never learns. What the client
// sees instead is up to mode. After KeepConn all later replies on the same
// connection are swallowed, too. The returned channel is closed when the reply
// was dropped.
//
// The command that match is given has its name in upper case, and its
// arguments as they were sent. Calls of match do not overlap; it must not call
// DropReply, HoldCommand, HoldReply or CutBatch. Every call of DropReply is good for one
// command, and several calls take one command each, in the order of the calls.
// A connection that has sent SUBSCRIBE, MONITOR or CLIENT REPLY is left alone:
// on it nobody can tell which reply belongs to which command.
//
// DropReply is safe for concurrent use.
func (p *Proxy) DropReply(match func(command []string) bool, mode Mode) (dropped <-chan struct{}) {
	waiting := &rule{match: match, mode: mode, happened: make(chan struct{})}
	p.rules.add(&p.rules.drops, waiting)
	return waiting.happened
}

// HoldCommand stops the next command for which match returns true before the
// server sees it, together with what follows it on the same connection; other
// connections flow on. The channel seen is closed when the command is held.
//
// After release the command goes on its way, even if the client has closed the
// connection in the meantime: this is a command that was late in the network.
// Release does not wait until the server has it. To call it more than once
// does nothing; called before a command has matched, the next match is let
// through. If the proxy closes the connection (Cut, Refuse, HealDropped, the
// end of the test) the held command is lost.
//
// The rules for match are those of DropReply. A command can be held and lose
// its reply after that. HoldCommand and release are safe for concurrent use.
func (p *Proxy) HoldCommand(match func(command []string) bool) (release func(), seen <-chan struct{}) {
	waiting := &rule{match: match, released: make(chan struct{}), happened: make(chan struct{})}
	p.rules.add(&p.rules.holds, waiting)
	return sync.OnceFunc(func() { close(waiting.released) }), waiting.happened
}

// HoldReply stops the reply to the next command for which match returns true,
// together with what follows it on the same connection: the server has executed
// the command, and other connections flow on. The channel seen is closed when
// the reply is held.
//
// After release the reply goes on its way: it was late in the network. If the
// client has closed the connection in the meantime, nobody reads it. Release
// does not wait until the client has it. To call it more than once does nothing;
// called before the reply is there, that is let through. If the proxy closes the
// connection the held reply is lost.
//
// The rules for match are those of DropReply; of a reply that is held and
// dropped, the drop comes when the hold is over. HoldReply and release are safe
// for concurrent use.
func (p *Proxy) HoldReply(match func(command []string) bool) (release func(), seen <-chan struct{}) {
	waiting := &rule{match: match, released: make(chan struct{}), happened: make(chan struct{})}
	p.rules.add(&p.rules.lates, waiting)
	return sync.OnceFunc(func() { close(waiting.released) }), waiting.happened
}
