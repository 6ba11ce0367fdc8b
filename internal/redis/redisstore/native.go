package redisstore

import (
	"strings"
	"sync/atomic"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/pipeline"
)

// A native release frees a key by a command of the server instead of a script: see
// command.DeleteIfEqual. It is brief, for a caller that knows no waiter. It looks at the queue after
// it has freed the key, so a release that finds a token there hands the free key on by release.lua.
// Meanwhile another caller may take the key, as it may after a classic client's release. If the
// process dies in between, the waiters' timers find the free key.

// support is whether the servers have the commands of a native release, which the reply to a brief
// release by the script says. One release tries them then; the others use the script until that one has
// its reply. Without a reply they are not tried again: a proxy may close the connection on a command that
// it does not know.
type support struct{ state atomic.Int32 }

const (
	unknown int32 = iota
	offered
	tried
	supported
	unsupported
)

// offer notes that a server has the commands.
func (s *support) offer() { s.state.CompareAndSwap(unknown, offered) }

// mayTry reports whether the caller is to send a native release.
func (s *support) mayTry() bool {
	return s.state.Load() == supported || s.state.CompareAndSwap(offered, tried)
}

// afterNative returns the command to send after a native release, or nil if its reply decides:
// release.lua if the key has another value, or if a token waits, and also after an error, which may be
// that of a proxy. If the server does not know the command, or the user has no right to it, no more
// native releases are sent. In a cluster, one server decides for all.
func (x *operation) afterNative(got pipeline.Reply, sends int) command.Command {
	reply, ok := got.Value.(command.Deletion)
	switch {
	case ok:
		x.store.native.state.CompareAndSwap(tried, supported) // not if another server has refused one
		if reply == command.Deleted {
			return nil
		}
		x.freed, x.brief = reply == command.DeletedBefore, 0
	case got.Err != nil && isUnsupported(got.Err.Error()):
		x.store.native.state.Store(unsupported)
	default:
		x.brief = 0
	}
	return x.Command(sends)
}

// isUnsupported reports whether a server's error says that it does not run a command for this user.
func isUnsupported(message string) bool {
	return strings.HasPrefix(message, "ERR unknown command") || strings.HasPrefix(message, "NOPERM ")
}
