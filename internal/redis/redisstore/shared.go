package redisstore

import (
	"slices"
	"strings"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/keyspace"
	"github.com/reqlock/reqlock/internal/redis/script"
	"github.com/reqlock/reqlock/internal/store"
)

// sharedOut is the reply of enqueue.lua and release.lua while shared leases are out.
const sharedOut = int64(-1)

// isBriefSharedTake reports whether the operation asks for a shared lease by the brief form.
func (x *operation) isBriefSharedTake() bool {
	return x.brief > 0 && x.script == &x.store.scripts.SharedAsk
}

// encodeShared adds the key of the shared leases.
func (x *operation) encodeShared() { x.encodeKey(&x.shared, keyspace.SharedSuffix) }

// useSharedScript makes the operation send the script that has to follow the reply sharedOut.
// It reports false if the command never has that reply. The operation may use the script
// already: a slow command is sent twice, and this is the reply to its other send.
func (x *operation) useSharedScript(sent command.Command) bool {
	scripts := &x.store.scripts
	switch x.script {
	case &scripts.Enqueue:
		x.replaceScript(&scripts.SharedAsk)
	case &scripts.Release:
		x.replaceScript(&scripts.SharedRelease)
	case &scripts.SharedAsk, &scripts.SharedRelease:
		text := sent.Args()[1]
		return text != x.script.SHA && text != x.script.Source
	default:
		return false
	}
	return true
}

// replaceScript replaces the script by one for shared leases, which has the same arguments,
// and one key more behind the lock and the queue. It makes new args, because an earlier send
// may still use the old ones.
func (x *operation) replaceScript(s *script.Script) {
	const afterQueue = 5
	x.shared.buffer = x.store.names.AppendCompanion(x.shared.buffer[:0], x.lock.buffer, keyspace.SharedSuffix)
	keys, _ := x.args[2].(int)
	x.args = slices.Concat([]any{"evalsha", s.SHA, keys + 1}, x.args[3:afterQueue], []any{&x.shared}, x.args[afterQueue:])
	x.script = s
}

// markerExtended is the reply of sharedrenewapart.lua for the lock.
const markerExtended = int64(-1)

// The keys of sharedrenewapart.lua.
const (
	lockApart = "K"
	setApart  = "S"
)

// renewApart returns the command to renew a shared lease of which the lock and the set are on
// different nodes. It is sent for the lock, and then for the set. With replicas there is no
// such command: they acknowledge the last command of a call only.
func (x *operation) renewApart(key *arg, which string) command.Command {
	return command.New(3, []any{"evalsha", x.store.scripts.SharedRenewApart.SHA, 1, key, &x.token, &x.ttl, which})
}

// isRenewalApart reports whether the command runs sharedrenewapart.lua.
func (x *operation) isRenewalApart(sent command.Command) bool {
	s, text := &x.store.scripts.SharedRenewApart, sent.Args()[1]
	return text == s.SHA || text == s.Source
}

// markerPrefix begins the marker of shared leases, which is the value of a lock while shared
// leases are out: see marker.lua.
const markerPrefix = "shared "

// hideMarker makes an answer say that shared leases are out, if they are, instead of passing
// their marker off as a holder. A classic client may use any value, so the form is checked as
// the scripts check it.
func hideMarker(a store.Answer) store.Answer {
	if fields, isLikely := strings.CutPrefix(a.Holder, markerPrefix); isLikely && isMarker(fields) {
		a.Shared, a.Holder, a.ForeignHolder = true, "", false
	}
	return a
}

// isMarker reports whether these are the fields of a marker: number, head and time.
func isMarker(fields string) bool {
	number, rest, _ := strings.Cut(fields, " ")
	head, until, _ := strings.Cut(rest, " ")
	return isDigits(number) && head != "" && isDigits(until)
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
