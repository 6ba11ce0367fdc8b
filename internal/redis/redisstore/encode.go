package redisstore

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/keyspace"
	"github.com/reqlock/reqlock/internal/redis/pipeline"
	"github.com/reqlock/reqlock/internal/redis/script"
	"github.com/reqlock/reqlock/internal/store"
)

// An operation is one transition of the protocol: a call with its arguments.
type operation struct {
	pipeline.Call
	store *Store
	details
	brief int // how many arguments its brief form has; 0 if it has none, or if a reply to that was insufficient
	arguments
}

// details are the parts of a request that decoding its reply needs.
type details struct {
	target     store.Target
	withHolder bool           // of a Take
	fences     int            // how many fencing numbers are wanted
	attempt    *store.Attempt // nil without an attempt
	rejoin     string         // of a Release
	ending     store.Ending   // of a Release
	freed      bool           // by a native release, which others wait behind
	toTicket   bool           // of a Release
	joinsFresh bool           // of an Enqueue
}

// init starts the operation. size is the length of a big argument.
func (x *operation) init(s *Store, to pipeline.Operation, r store.Target, inline bool, size int) {
	x.store, x.details, x.brief = s, details{target: r}, 0
	x.Begin(to, r.Bound, size, inline)
}

// clear drops the references to the request, which may be big.
func (x *operation) clear() {
	x.details = details{}
	x.fingerprint.buffer, x.result.buffer = nil, nil
	x.Clear()
}

// arguments are the arguments of an operation, with their memory.
type arguments struct {
	script *script.Script // nil if args are those of SET
	args   []any

	// The commands of a brief send.
	briefSet      command.SetNX
	briefScript   command.Part
	nativeRelease *command.DeleteIfEqual // made when it is needed: a waiter keeps the memory of its operations

	array                                  [18]any
	lock, queue, shared, fence, record     arg // the keys
	token, ttl, claim, rejoinToken, waiter arg
	fingerprint, keep, result, reference   arg // of an attempt
}

// The brief forms of commands, by how many arguments they have.
const (
	briefTake          = 6 // SET NX GET without GET
	briefRelease       = 6 // release.lua or withdraw.lua with only the token
	briefSharedTake    = 8 // sharedask.lua with the token and the TTL
	briefSharedRelease = 7 // sharedrelease.lua with only the token
)

// encodeTake sets the arguments of SET NX GET: see Command.
func (x *operation) encodeTake() {
	x.lock.buffer = x.store.names.AppendLock(x.lock.buffer[:0], x.target.Key)
	x.Key, x.script, x.brief = x.lock.buffer, nil, briefTake
	x.args = append(x.array[:0],
		"set", &x.lock, x.token.setString(x.target.Token), "px", x.ttl.setInt(x.target.TTL.Milliseconds()), "nx", "get")
}

// encodeScript begins the arguments of a script. Its first key is the lock.
func (x *operation) encodeScript(s *script.Script) {
	x.lock.buffer = x.store.names.AppendLock(x.lock.buffer[:0], x.target.Key)
	x.encodeSHA(s)
}

// encodeScriptOf is encodeScript for the lock with this name, unless the name is "".
func (x *operation) encodeScriptOf(s *script.Script, lock string) {
	if lock == "" {
		x.encodeScript(s)
		return
	}
	x.lock.buffer = append(x.lock.buffer[:0], lock...)
	x.encodeSHA(s)
}

func (x *operation) encodeSHA(s *script.Script) {
	x.Key, x.script = x.lock.buffer, s
	x.args = append(x.array[:0], "evalsha", s.SHA, 1, &x.lock)
}

// encodeKey adds a key of the script: the companion of the lock with this suffix.
func (x *operation) encodeKey(key *arg, suffix string) {
	key.buffer = x.store.names.AppendCompanion(key.buffer[:0], x.lock.buffer, suffix)
	x.args = append(x.args, key)
	x.args[2] = len(x.args) - 3
}

// encodeFence adds the fence, the last key of a script, if fencing numbers are wanted.
func (x *operation) encodeFence() {
	if x.fences > 0 {
		x.encodeKey(&x.fence, keyspace.FenceSuffix)
	}
}

// encodeLease adds the arguments of lease.lua.
func (x *operation) encodeLease() {
	x.args = append(x.args, x.token.setString(x.target.Token), x.ttl.setInt(x.target.TTL.Milliseconds()))
}

// encodeQueue adds the arguments of queue.lua, which include those of lease.lua.
func (x *operation) encodeQueue(claim time.Duration) {
	x.encodeLease()
	x.args = append(x.args, x.claim.setInt(claim.Milliseconds()), x.store.channelPrefix, x.store.subscriber.Mode())
}

// encodeAsk adds the arguments of ask.lua that queue.lua does not have.
func (x *operation) encodeAsk(join int) {
	x.args = append(x.args, join, x.fences)
}

// How a token joins the queue: see ask.lua.
const (
	doesNotJoin = iota
	joinsAgain
	joinsApart
	joinsFresh
)

// joinOf returns how the token of an Enqueue joins the queue.
func joinOf(r *store.EnqueueRequest) int {
	switch {
	case !r.Join:
		return doesNotJoin
	case r.Fresh && r.Apart:
		return joinsFresh
	case r.Apart:
		return joinsApart
	default:
		return joinsAgain
	}
}

// joinArg is the place of encodeAsk's first argument, from the end.
const joinArg = 2

// boolArg returns a boolean as the scripts expect it.
func boolArg(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Command returns the command of a send. The first send has the brief form where that is
// usually enough: SET without GET, with a cheap reply if the key is free, a shared ask that
// does not join the queue, and a release of a key without a known waiter. A later SET needs
// GET, because it may find the token of the first one. So does a SET while no server has
// shown that it knows this form.
func (x *operation) Command(sends int) command.Command {
	brief := x.brief > 0 && sends == 1
	if x.script == nil {
		if brief && x.store.isModern.Load() {
			x.briefSet.Reset(x.args[:x.brief])
			return &x.briefSet
		}
		return command.New(1, x.args)
	}
	if brief && x.script == &x.store.scripts.Release && x.store.native.mayTry() {
		if x.nativeRelease == nil {
			x.nativeRelease = new(command.DeleteIfEqual)
		}
		x.nativeRelease.Reset(x.args[3], x.args[5], x.args[4])
		return x.nativeRelease
	}
	if brief {
		var together *script.Script
		if x.script == &x.store.scripts.Release {
			together = &x.store.scripts.FreeMany
		}
		x.briefScript.Reset(x.args[:x.brief], together)
		return &x.briefScript
	}
	args := x.args
	if x.joinsFresh && sends > 1 { // the first send may have added the token
		args = slices.Clone(args)
		args[len(args)-joinArg] = joinsAgain
	}
	return command.New(3, args)
}

// Fallback returns the command to send after a reply that does not answer the request, or
// nil if there is none. The server has changed nothing before such a reply, except for a native release, and unless
// command.MayBeApplied says that a proxy may have lost the server's reply:
//
//   - NOSCRIPT, after a restart, a failover or SCRIPT FLUSH: the source of the script.
//   - TRYAGAIN for a renewal, because the slot is moving and not all keys are on one side:
//     the renewal with the lock as its only key, and the set of a shared lease. If these two
//     are apart: see renewApart.
//   - A brief release or shared ask is not enough, or was refused as part of a command.Joint: the long form.
//   - A native release: see afterNative.
//   - An exclusive token meets shared leases: the script for both kinds.
//   - A brief SET or shared ask was refused: the long form, if the caller wants the holder,
//     or if the command may have found the token of an earlier send.
func (x *operation) Fallback(sent command.Command, got pipeline.Reply, sends int) command.Command {
	if _, isNative := sent.(*command.DeleteIfEqual); isNative {
		return x.afterNative(got, sends)
	}
	if got.Err == nil {
		refused := got.Value == command.WasSet(false) || (got.Value == noRoom && x.isBriefSharedTake())
		if (refused && (sends > 1 || x.withHolder)) || (x.brief > 0 && got.Value == tooBrief) {
			x.brief = 0
			return x.Command(sends)
		}
		if got.Value == sharedOut && x.useSharedScript(sent) {
			return x.Command(sends)
		}
		if got.Value == markerExtended && x.isRenewalApart(sent) {
			return x.renewApart(&x.shared, setApart)
		}
		return nil
	}
	var refused *command.RefusedError
	if errors.As(got.Err, &refused) {
		x.brief = 0
		return x.Command(sends)
	}
	args := sent.Args()
	switch text := got.Err.Error(); {
	case args[0] == "evalsha" && strings.HasPrefix(text, "NOSCRIPT"):
		source := x.script.Source
		if x.isRenewalApart(sent) {
			source = x.store.scripts.SharedRenewApart.Source
		}
		return command.New(3, append([]any{"eval", source}, args[2:]...))
	case x.script == &x.store.scripts.Renew && args[2] != 1 && x.fences == 0 && strings.HasPrefix(text, "TRYAGAIN"):
		return command.New(3, []any{"evalsha", x.script.SHA, 1, &x.lock, &x.token, &x.ttl, 0})
	case x.script == &x.store.scripts.SharedRenew && args[2] != 2 && x.fences == 0 && strings.HasPrefix(text, "TRYAGAIN"):
		return command.New(3, []any{"evalsha", x.script.SHA, 2, &x.lock, &x.shared, &x.token, &x.ttl, 0})
	case x.script == &x.store.scripts.SharedRenew && args[2] == 2 && !x.store.needsReplicas && strings.HasPrefix(text, "TRYAGAIN"):
		return x.renewApart(&x.lock, lockApart)
	default:
		return nil
	}
}
