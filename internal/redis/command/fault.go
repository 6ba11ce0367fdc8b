package command

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/store"
)

// ErrNoReply is the fault of a command that outlived its bound.
var ErrNoReply = errors.New("no reply within the command timeout")

// An UnexpectedReplyError is the fault of a reply that is not of the command's form, as
// from a proxy that answers in its own way. Nothing of it is believed.
type UnexpectedReplyError struct{ kind string }

// Error names the reply's type, never its content: that may be a token.
func (e *UnexpectedReplyError) Error() string { return "unexpected reply of type " + e.kind }

// UnexpectedReply returns the fault of a reply of another type than the command has.
func UnexpectedReply(value any) error { return &UnexpectedReplyError{fmt.Sprintf("%T", value)} }

// IsTransport reports whether an error says that no reply came, so that
// nothing is known of the command. Whatever the server itself said is not.
func IsTransport(err error) bool {
	var fromServer redis.Error
	return !errors.As(err, &fromServer) || IsMasterless(err)
}

// IsMasterless reports whether no Sentinel has named a master to send the command
// to. What the Sentinels have said instead is in it.
func IsMasterless(err error) bool { return strings.Contains(err.Error(), "all sentinels specified") }

// IsLost reports whether nothing is known of a command with this error: no reply
// came, or a node of a cluster has sent the client to another one. The client has
// gone there, and where it has lost the reply, the error may still be that of
// before.
func IsLost(err error) bool {
	text := err.Error()
	return IsTransport(err) || strings.HasPrefix(text, "MOVED ") || strings.HasPrefix(text, "ASK ")
}

// NewFault turns the error that ended an exchange into a fault. uncertain says
// that a send of it may have been applied, or may yet be.
func NewFault(err error, uncertain bool) *store.Fault {
	f := &store.Fault{Err: Sanitize(err), Unknown: uncertain}
	var odd *UnexpectedReplyError
	switch {
	case errors.As(err, &odd):
		f.Unknown = true
	case IsLost(err):
		f.Temporary = !errors.Is(err, redis.ErrClosed)
	default:
		f.Temporary = isPassing(err.Error())
	}
	return f
}

// passing lists how the errors begin that a server outgrows by itself: while it
// loads, fails over, looks for replicas, or runs somebody's script, and while a
// slot moves. A master that becomes a replica ends a WAIT, and refuses the next one.
var passing = [...]string{
	"LOADING ", "READONLY ", "MASTERDOWN ", "CLUSTERDOWN ", "TRYAGAIN ", "NOREPLICAS ", "BUSY ",
	"UNBLOCKED ", "ERR WAIT cannot be used with replica",
	"ERR max number of clients reached",
	"ERR Script attempted to access a non local key", // which expired as its slot moved
}

// isPassing reports whether the server's error is one that it outgrows.
func isPassing(text string) bool {
	for _, prefix := range passing {
		if strings.HasPrefix(text, prefix) {
			return true
		}
	}
	return false
}

// IsUnsent reports whether the command surely did not reach the server: no
// connection was had, or it was kept back.
func IsUnsent(err error) bool {
	var op *net.OpError
	var unsent unsentError
	return errors.As(err, &unsent) || IsMasterless(err) ||
		errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrClosed) ||
		(errors.As(err, &op) && op.Op == "dial")
}

// Unsent returns the error of a command that was not sent, for this reason.
func Unsent(why error) error { return unsentError{why} }

// An unsentError is why a command was not sent.
type unsentError struct{ error }

func (u unsentError) Unwrap() error { return u.error }

// Sanitize hides errors of package context, and those that pose as one, behind
// their text: they speak of a command's bound, not of the caller's context. It
// also hides who the client's user is, and what the command was about.
func Sanitize(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return fmt.Errorf("%w (%s)", ErrNoReply, err.Error())
	}
	if IsMasterless(err) { // one line for each Sentinel, mostly the same
		lines := slices.Compact(strings.Split(err.Error(), "\n"))
		return errors.New(RedactUser(strings.Join(lines, "; ")))
	}
	return redact(err)
}
