package redisstore

import (
	"slices"
	"strings"

	"github.com/reqlock/reqlock/internal/redis/keyspace"
	"github.com/reqlock/reqlock/internal/redis/script"
	"github.com/reqlock/reqlock/internal/store"
)

// sharedOut is the reply of enqueue.lua and release.lua while shared leases are out.
const sharedOut = int64(-1)

// encodeShared adds the key of the shared leases.
func (x *operation) encodeShared() { x.encodeKey(&x.shared, keyspace.SharedSuffix) }

// sharedScript returns the script that has to follow the reply sharedOut. It returns nil for
// an operation that never has that reply.
func (x *operation) sharedScript() *script.Script {
	switch x.script {
	case &x.store.scripts.Enqueue:
		return &x.store.scripts.SharedAsk
	case &x.store.scripts.Release:
		return &x.store.scripts.SharedRelease
	default:
		return nil
	}
}

// useSharedScript replaces the script by one for shared leases, which has the same arguments,
// and one key more behind the lock and the queue. It makes new args, because an earlier send
// may still use the old ones.
func (x *operation) useSharedScript(s *script.Script) {
	const afterQueue = 5
	x.shared.buffer = x.store.names.AppendCompanion(x.shared.buffer[:0], x.lock.buffer, keyspace.SharedSuffix)
	keys, _ := x.args[2].(int)
	x.args = slices.Concat([]any{"evalsha", s.SHA, keys + 1}, x.args[3:afterQueue], []any{&x.shared}, x.args[afterQueue:])
	x.script = s
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
