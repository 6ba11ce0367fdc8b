package redisstore

import (
	"strings"
	"time"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/keyspace"
	"github.com/reqlock/reqlock/internal/redis/pipeline"
	"github.com/reqlock/reqlock/internal/redis/script"
	"github.com/reqlock/reqlock/internal/store"
)

// An operation is one transition of the protocol: a call, and all that it says.
type operation struct {
	pipeline.Call
	store *Store
	details
	brief bool // it has a brief form that was not found wanting
	words
}

// details are the parts of a request that the reply is read with.
type details struct {
	target     store.Target
	withHolder bool           // of a Take
	fences     int            // how many fencing numbers are wanted
	attempt    *store.Attempt // nil without one
	rejoin     string         // of a release
	ending     store.Ending   // of a release
}

// begin starts the operation. size is the length of a big argument.
func (x *operation) begin(s *Store, to pipeline.Operation, r store.Target, inline bool, size int) {
	x.store, x.details, x.brief = s, details{target: r}, false
	x.Call.Begin(to, r.Bound, size, inline)
}

// clear makes the exchange let go of what it was about, which may be big.
func (x *operation) clear() {
	x.details = details{}
	x.fingerprint.buffer, x.result.buffer = nil, nil
	x.Call.Clear()
}

// words are what an exchange says, with all the memory that this takes.
type words struct {
	script *script.Script // nil where args are those of SET
	args   []any

	// The first send uses these.
	plain command.SetNX
	short command.Generic

	array                               [17]any
	lock, line, fence, record           text // the keys
	token, ttl, claim, rejoined, waiter text
	fingerprint, keep, result           text // of an attempt
}

// briefLen is how many of the arguments of SET NX GET stand before GET, and how
// many of release.lua make its short form.
const briefLen = 6

// sayTake makes the exchange say SET NX GET: see word.
func (x *operation) sayTake() {
	x.lock.buffer = x.store.names.AppendLock(x.lock.buffer[:0], x.target.Key)
	x.Key, x.script, x.brief = x.lock.buffer, nil, true
	x.args = append(x.array[:0],
		"set", &x.lock, x.token.set(x.target.Token), "px", x.ttl.number(x.target.TTL.Milliseconds()), "nx", "get")
}

// sayScript makes the exchange call a script for the lock of the request, which
// is its first key.
func (x *operation) sayScript(s *script.Script) {
	x.lock.buffer = x.store.names.AppendLock(x.lock.buffer[:0], x.target.Key)
	x.Key, x.script = x.lock.buffer, s
	x.args = append(x.array[:0], "evalsha", s.SHA, 1, &x.lock)
}

// sayKey adds a key of the script, a companion of the lock.
func (x *operation) sayKey(key *text, suffix string) {
	key.buffer = x.store.names.AppendCompanion(key.buffer[:0], x.lock.buffer, suffix)
	x.args = append(x.args, key)
	x.args[2] = len(x.args) - 3
}

// sayFence adds the fence, the last key of a script, if fencing numbers are wanted.
func (x *operation) sayFence() {
	if x.fences > 0 {
		x.sayKey(&x.fence, keyspace.FenceSuffix)
	}
}

// sayLease adds the arguments of a script that works on a lease: see lease.lua.
func (x *operation) sayLease() {
	x.args = append(x.args, x.token.set(x.target.Token), x.ttl.number(x.target.TTL.Milliseconds()))
}

// sayLine adds those of a script that works on the line too: see queue.lua.
func (x *operation) sayLine(claim time.Duration) {
	x.sayLease()
	x.args = append(x.args, x.claim.number(claim.Milliseconds()), x.store.channelPrefix, x.store.subscriber.Mode())
}

// sayAsk adds those of a script that asks: see ask.lua.
func (x *operation) sayAsk(join bool) {
	x.args = append(x.args, flag(join), x.fences)
}

// Command returns the command of a send. The first one is brief where that mostly
// does: a SET without GET, whose reply is cheap where the key is free; a release
// of a key for which nobody is known to wait. A later SET needs GET: it may meet
// the token of the first.
func (x *operation) Command(sends int) command.Command {
	keyPos, brief := int8(3), x.brief && sends == 1
	if x.script == nil {
		keyPos = 1
		if brief {
			x.plain.Reset(x.args[:briefLen])
			return &x.plain
		}
		if x.store.oldServer.Load() {
			x.script = &x.store.scripts.Take
			x.args = []any{"evalsha", x.script.SHA, 1, &x.lock, &x.token, &x.ttl}
			keyPos = 3
		}
	}
	if brief {
		x.short.Reset(keyPos, x.args[:briefLen])
		return &x.short
	}
	return command.New(keyPos, x.args)
}

// Fallback returns what to send after a reply that leaves the question open, in
// which the server has changed nothing: the script by its source, where the
// server does not know it, after a restart, a failover or SCRIPT FLUSH; the
// script that stands in for SET NX GET, from then on, where the server is too old
// for it; a renewal with the lock as its only key, where its slot is on its way and
// the others are not on the same side; and the long form after a brief one that did
// not do: of a release, and of a SET that was refused, if it is asked for, or if it
// may have met its own token. It returns nil where there is nothing else to send.
func (x *operation) Fallback(sent command.Command, got pipeline.Reply, sends int) command.Command {
	if got.Err == nil {
		refused := got.Value == command.WasSet(false) && (sends > 1 || x.withHolder)
		if refused || (x.brief && got.Value == tooBrief) {
			x.brief = false
			return x.Command(sends)
		}
		return nil
	}
	args := sent.Args()
	switch said := got.Err.Error(); {
	case args[0] == "evalsha" && strings.HasPrefix(said, "NOSCRIPT"):
		return command.New(3, append([]any{"eval", x.script.Source}, args[2:]...))
	case args[0] == "set" && strings.HasPrefix(said, "ERR syntax error"):
		x.store.oldServer.Store(true)
		x.brief = false
		return x.Command(sends)
	case x.script == &x.store.scripts.Renew && args[2] != 1 && x.fences == 0 && strings.HasPrefix(said, "TRYAGAIN"):
		return command.New(3, []any{"evalsha", x.script.SHA, 1, &x.lock, &x.token, &x.ttl, 0})
	default:
		return nil
	}
}
