package command

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/store"
)

// ErrNoReply is the error of a command without a reply at its deadline.
var ErrNoReply = errors.New("no reply within the command timeout")

// A BusyPoolError is an ErrNoReply of a command that may have got no connection, because all
// connections in the client's pool were in use.
type BusyPoolError struct{ Conns int }

func (e *BusyPoolError) Error() string {
	return fmt.Sprintf("%v: all %d connections in the pool of the redis client are in use", ErrNoReply, e.Conns)
}

// Unwrap returns ErrNoReply.
func (*BusyPoolError) Unwrap() error { return ErrNoReply }

// An UnexpectedReplyError is the error of a reply of a form that the command does not have,
// as from a proxy that changes replies. No part of such a reply is used.
type UnexpectedReplyError struct{ kind string }

// Error names the reply's type, never its content: that may be a token.
func (e *UnexpectedReplyError) Error() string { return "unexpected reply of type " + e.kind }

// UnexpectedReply returns an *UnexpectedReplyError.
func UnexpectedReply(value any) error { return &UnexpectedReplyError{fmt.Sprintf("%T", value)} }

// IsTransport reports whether an error says that there is no reply, so that the command
// may have been applied or not. An error that the server sent is not such an error.
func IsTransport(err error) bool {
	var fromServer redis.Error
	return !errors.As(err, &fromServer) || IsMasterless(err)
}

// IsMasterless reports whether no Sentinel has named a master. The error's text has the
// replies of the Sentinels, which are errors of servers.
func IsMasterless(err error) bool { return strings.Contains(err.Error(), "all sentinels specified") }

// IsLost reports whether a command with this error may have been applied or not: there is
// no reply, or a node of a cluster has redirected the client. The client follows the
// redirection, and if the reply of the other node is lost, the error may still be the
// redirection.
func IsLost(err error) bool {
	message := err.Error()
	return IsTransport(err) || strings.HasPrefix(message, "MOVED ") || strings.HasPrefix(message, "ASK ")
}

// MayBeApplied reports whether a command with this error reply may have been applied: it may be that of a proxy, which
// has lost the server's reply. The server's own errors have a code, which is ERR only if no other fits.
func MayBeApplied(err error) bool {
	message := err.Error()
	return !errorCode.MatchString(message) ||
		strings.HasPrefix(message, "ERR ") && !strings.HasPrefix(message, "ERR unknown command") && !isPassing(message)
}

// NewFault turns the error of a call into a fault. uncertain says that a send of the call
// may have been applied, or may still be.
func NewFault(err error, uncertain bool) *store.Fault {
	f := &store.Fault{Err: Sanitize(err), Unknown: uncertain, Outage: IsOutage(err)}
	var unexpected *UnexpectedReplyError
	switch {
	case errors.As(f.Err, &unexpected):
		f.Unknown = true
	case IsLost(err):
		f.Temporary = !errors.Is(err, redis.ErrClosed)
	default:
		f.Temporary = isPassing(err.Error())
	}
	return f
}

// passing lists the prefixes of errors that end by themselves: while a server loads its
// data, fails over, waits for replicas or runs a long script, and while a slot moves. A
// master that becomes a replica ends a WAIT, and refuses the next one.
var passing = [...]string{
	"LOADING ", "READONLY ", "MASTERDOWN ", "CLUSTERDOWN ", "TRYAGAIN ", "NOREPLICAS ", "BUSY ",
	"UNBLOCKED ", "ERR WAIT cannot be used with replica",
	"ERR max number of clients reached",
	"ERR Script attempted to access a non local key", // a key that expired while its slot moved
}

// isPassing reports whether an error of the server ends by itself.
func isPassing(message string) bool {
	return hasPrefix(message, passing[:])
}

func hasPrefix(message string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(message, prefix) })
}

// IsUnsent reports whether the command certainly did not reach the server: there was no
// connection, or it was not sent.
func IsUnsent(err error) bool {
	var unsent unsentError
	return errors.As(err, &unsent) || IsUnreached(err) ||
		errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrClosed)
}

// unserved lists the prefixes of errors that a server sends while it serves no client. The
// other errors of a server are about one command, one key or one slot.
var unserved = [...]string{
	"LOADING ", "READONLY ", "MASTERDOWN ", "CLUSTERDOWN ", "BUSY ", "ERR max number of clients reached",
}

// IsUnserved reports whether an error says that the server serves no client at present:
// there is no reply, or the server replies to all clients that it cannot serve them. A
// client that was closed says nothing about the server.
func IsUnserved(err error) bool {
	if IsLost(err) {
		return !errors.Is(err, redis.ErrClosed) && !IsAnswered(err)
	}
	return hasPrefix(err.Error(), unserved[:])
}

// refusing lists the prefixes of errors that a server sends to all clients, or to all with the same
// options, until somebody changes the server or the options. partial lists those for a part of the
// commands only.
var (
	refusing = [...]string{
		"NOAUTH ", "ERR Protocol error: unauthenticated ", "WRONGPASS ", "DENIED ", "ERR invalid password", "ERR AUTH ",
		"ERR DB index is out of range", "ERR This instance has cluster support disabled",
	}
	partial = [...]string{"NOPERM ", "OOM ", "MISCONF ", "NOREPLICAS ", "ERR unknown command"}
)

// IsOutage reports whether an error says that calls of other keys fail, too: there is no reply, too
// few replicas have acknowledged the call, or the server refuses all calls. The other errors are
// about one command, one key or one slot, or about a server that the client itself refuses, such as
// one in quarantine.
func IsOutage(err error) bool {
	var unexpected *UnexpectedReplyError
	if IsLost(err) {
		return !errors.As(err, &unexpected) && !IsAnswered(err)
	}
	return hasPrefix(err.Error(), unserved[:]) || hasPrefix(err.Error(), refusing[:]) || IsPartial(err)
}

// IsPartial reports whether an error is that of an outage for a part of the commands: the server
// serves the others.
func IsPartial(err error) bool {
	text := err.Error()
	return !IsLost(err) && (hasPrefix(text, partial[:]) || strings.HasPrefix(text, "ERR ") && refusedInScript.MatchString(text))
}

// refusedInScript matches the errors of scripts whose commands the server does not have, or refuses
// to the user.
var refusedInScript = regexp.MustCompile(`(?i)unknown (redis |valkey )?command|The user executing the script can't|ACL failure in script`)

// Answered returns an error for which IsUnserved is false: the client itself refuses the
// server because of the server's answer. There is one more layer around it, because go-redis
// removes one from the errors of OnConnect.
func Answered(why error) error { return fmt.Errorf("%w", answeredError{why}) }

// IsAnswered reports whether an error is that of a server that a client refuses because of its
// answer. The text then says what to do.
func IsAnswered(err error) bool {
	var answered answeredError
	return errors.As(err, &answered)
}

// An answeredError is the reason why a client refuses a server that answers.
type answeredError struct{ error }

func (a answeredError) Unwrap() error { return a.error }

// IsUnreached reports whether no connection to a server could be made.
func IsUnreached(err error) bool {
	var op *net.OpError
	return IsMasterless(err) || (errors.As(err, &op) && op.Op == "dial")
}

// Unsent returns the error of a command that was not sent because of why.
func Unsent(why error) error { return unsentError{why} }

// An unsentError is the reason why a command was not sent.
type unsentError struct{ error }

func (u unsentError) Unwrap() error { return u.error }
