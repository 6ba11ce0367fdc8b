package redistest

import (
	"slices"
	"strings"
	"sync"
)

// Mode is what the client observes when DropReply drops a reply.
type Mode int

const (
	// CloseConn closes the connection of the client instead: the client knows at once that
	// the result is unknown.
	CloseConn Mode = iota

	// KeepConn leaves the connection open, without further replies: the client must time
	// out.
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

// rule is a fault for one command.
type rule struct {
	match    func(command []string) bool
	mode     Mode          // of a dropped reply
	released chan struct{} // of a held command or reply: closed when it may go on
	happened chan struct{} // closed when the fault has taken place
	batch    *batch        // of a cut
}

// rules are the faults that still apply to a later command. They are safe for concurrent use.
type rules struct {
	mu           sync.Mutex
	commandHolds []*rule
	replyHolds   []*rule
	replyDrops   []*rule
	batchCuts    []*rule
}

// add appends a rule to list, which is one of the fields of r.
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

// DropReply drops the reply to the next command for which match returns true: the server
// executes the command, and the client does not learn the result. The mode is what the
// client observes instead. After KeepConn all later replies on the same connection are
// dropped, too. The returned channel is closed when the reply was dropped.
//
// The command that match is given has its name in upper case, and its
// arguments as they were sent. Calls of match do not overlap; it must not call
// DropReply, HoldCommand, HoldReply or CutBatch. Every call of DropReply is good for one
// command, and several calls take one command each, in the order of the calls.
// DropReply ignores connections that have sent SUBSCRIBE, MONITOR or CLIENT REPLY: their
// replies cannot be matched with commands.
//
// DropReply is safe for concurrent use.
func (p *Proxy) DropReply(match func(command []string) bool, mode Mode) (dropped <-chan struct{}) {
	waiting := &rule{match: match, mode: mode, happened: make(chan struct{})}
	p.rules.add(&p.rules.replyDrops, waiting)
	return waiting.happened
}

// HoldCommand stops the next command for which match returns true before it reaches the
// server, with all later commands on the same connection. Other connections are not
// affected. The channel seen is closed when the command is held.
//
// After release the proxy forwards the command, even if the client has closed the
// connection meanwhile: the network has delayed the command. Release does not wait until
// the server has the command. Further calls do nothing. If release is called before a
// command matches, the next match is not held. If the proxy closes the connection (Cut,
// Refuse, HealDropped, the end of the test) the held command is lost.
//
// The rules for match are those of DropReply. A command can be held and lose
// its reply after that. HoldCommand and release are safe for concurrent use.
func (p *Proxy) HoldCommand(match func(command []string) bool) (release func(), seen <-chan struct{}) {
	waiting := &rule{match: match, released: make(chan struct{}), happened: make(chan struct{})}
	p.rules.add(&p.rules.commandHolds, waiting)
	return sync.OnceFunc(func() { close(waiting.released) }), waiting.happened
}

// HoldReply stops the reply to the next command for which match returns true,
// with all later replies on the same connection: the server has executed the command. Other
// connections are not affected. The channel seen is closed when the reply is held.
//
// After release the proxy forwards the reply: the network has delayed it. Release does not
// wait until the client has the reply. Further calls do nothing. If release is called before
// the reply is there, the reply is not held. If the client or the proxy closes the
// connection the held reply is lost.
//
// The rules for match are those of DropReply. A reply that is held and dropped is dropped
// after the hold. HoldReply and release are safe
// for concurrent use.
func (p *Proxy) HoldReply(match func(command []string) bool) (release func(), seen <-chan struct{}) {
	waiting := &rule{match: match, released: make(chan struct{}), happened: make(chan struct{})}
	p.rules.add(&p.rules.replyHolds, waiting)
	return sync.OnceFunc(func() { close(waiting.released) }), waiting.happened
}
