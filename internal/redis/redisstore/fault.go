package redisstore

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

// isTransport reports whether an error says that no reply came, so that
// nothing is known of the command. Whatever the server itself said is not.
func isTransport(err error) bool {
	var fromServer redis.Error
	return !errors.As(err, &fromServer) || isMasterless(err)
}

// isMasterless reports whether no Sentinel has named a master to send the command
// to. What the Sentinels have said instead is in it.
func isMasterless(err error) bool { return strings.Contains(err.Error(), "all sentinels specified") }

// isLost reports whether nothing is known of a command with this error: no reply
// came, or a node of a cluster has sent the client to another one. The client has
// gone there, and where it has lost the reply, the error may still be that of
// before.
func isLost(err error) bool {
	text := err.Error()
	return isTransport(err) || strings.HasPrefix(text, "MOVED ") || strings.HasPrefix(text, "ASK ")
}

// newFault turns the error that ended an exchange into a fault. uncertain says
// that a send of it may have been applied, or may yet be.
func newFault(err error, uncertain bool) *store.Fault {
	f := &store.Fault{Err: seal(err), Unknown: uncertain}
	var odd *shapeError
	switch {
	case errors.As(err, &odd):
		f.Unknown = true
	case isLost(err):
		f.Passing = !errors.Is(err, redis.ErrClosed)
	default:
		f.Passing = isPassing(err.Error())
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

// neverSent reports whether the command surely did not reach the server: no
// connection was had, or it was kept back.
func neverSent(err error) bool {
	var op *net.OpError
	var unsent unsentError
	return errors.As(err, &unsent) || isMasterless(err) ||
		errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrClosed) ||
		(errors.As(err, &op) && op.Op == "dial")
}

// An unsentError is why a command was not sent.
type unsentError struct{ error }

func (u unsentError) Unwrap() error { return u.error }

// seal hides errors of package context, and those that pose as one, behind
// their text: they speak of a command's bound, not of the caller's context. It
// also hides who the client's user is, and what the command was about.
func seal(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return fmt.Errorf("%w (%s)", errNoReply, err.Error())
	}
	if isMasterless(err) { // one line for each Sentinel, mostly the same
		lines := slices.Compact(strings.Split(err.Error(), "\n"))
		return errors.New(anonymous(strings.Join(lines, "; ")))
	}
	return hide(err)
}
