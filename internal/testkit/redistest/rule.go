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
	released chan struct{} // of a held command or reply: closed when the proxy may forward it
	happened chan struct{} // closed when the fault has taken place
	batch    *batch        // of CutBatch
}

// rules are the rules that no command has matched yet. They are safe for concurrent use.
type rules struct {
	mu           sync.Mutex
	commandHolds []*rule
	replyHolds   []*rule
	replyDrops   []*rule
	batchCuts    []*rule
}

// add appends a rule to list, which is one of the fields of r.
func (r *rules) add(list *[]*rule, one *rule) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*list = append(*list, one)
}

// take removes the oldest rule in list that matches, and returns it, or nil if none matches.
// Calls of match do not overlap, because they hold the lock.
func (r *rules) take(list *[]*rule, command []string) *rule {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(*list, func(one *rule) bool { return one.match(command) })
	if i < 0 {
		return nil
	}
	taken := (*list)[i]
	*list = slices.Delete(*list, i, i+1)
	return taken
}

// DropReply drops the reply to the next command for which match returns true: the server
// executes the command, and the client does not receive the result. The mode determines what the
// client observes instead. With KeepConn, all later replies on the same connection are dropped,
// too. The returned channel is closed when the reply was dropped.
//
// The argument of match is a command, with its name in upper case, and its arguments as they were
// sent. Calls of match do not overlap. The function match must not call DropReply, HoldCommand,
// HoldReply or CutBatch. One call of DropReply applies to one command. Several calls apply to one
// command each, in the order of the calls. DropReply ignores connections that have sent
// SUBSCRIBE, MONITOR or CLIENT REPLY, because their replies cannot be matched with commands.
//
// DropReply is safe for concurrent use.
func (p *Proxy) DropReply(match func(command []string) bool, mode Mode) (dropped <-chan struct{}) {
	drop := &rule{match: match, mode: mode, happened: make(chan struct{})}
	p.rules.add(&p.rules.replyDrops, drop)
	return drop.happened
}

// HoldCommand stops the next command for which match returns true before it reaches the
// server, with all later commands on the same connection. Other connections are not
// affected. The channel seen is closed when the command is held.
//
// After release the proxy forwards the command, as a slow network does, even if the client has
// closed the connection meanwhile. The function release does not wait until the server has
// received the command. Further calls do nothing. If release is called before a command matches,
// the next match is not held. If the proxy closes the connection (by Cut, Refuse, HealDropped or
// the end of the test), the held command is lost.
//
// The rules for match are those of DropReply. HoldCommand and DropReply can apply to the same
// command. HoldCommand and release are safe for concurrent use.
func (p *Proxy) HoldCommand(match func(command []string) bool) (release func(), seen <-chan struct{}) {
	hold := &rule{match: match, released: make(chan struct{}), happened: make(chan struct{})}
	p.rules.add(&p.rules.commandHolds, hold)
	return sync.OnceFunc(func() { close(hold.released) }), hold.happened
}

// HoldReply stops the reply to the next command for which match returns true, with all later
// replies on the same connection. The server has executed the command. Other connections are not
// affected. The channel seen is closed when the reply is held.
//
// The rules for release and match are those of HoldCommand. Exception: if the client closes the
// connection, the held reply is lost. If DropReply applies to the same command, the reply is first
// held and then dropped.
func (p *Proxy) HoldReply(match func(command []string) bool) (release func(), seen <-chan struct{}) {
	hold := &rule{match: match, released: make(chan struct{}), happened: make(chan struct{})}
	p.rules.add(&p.rules.replyHolds, hold)
	return sync.OnceFunc(func() { close(hold.released) }), hold.happened
}
