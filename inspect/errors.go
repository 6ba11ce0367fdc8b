package inspect

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/redis/command"
)

// The kinds of error that an Inspector returns. Test for them with errors.Is. If Redis cannot be
// reached, or refuses a command, the error is core.ErrUnavailable, and an action may have taken effect:
// its text says so. If ctx has ended, the error is that of ctx.
var (
	// ErrNotFound says that there is no such lock: nobody holds it, and nobody waits for it.
	ErrNotFound = errors.New("reqlock: no such lock")
	// ErrChanged says that an action has changed nothing, because none of the leases that the
	// operator has seen is out any more. Call Lock again.
	ErrChanged = errors.New("reqlock: the lock has changed since it was seen")
	// ErrAttempt says that Revoke and FreeNow end no attempt at an idempotent request. Its handler
	// may still commit, and without the lock the request would have an unknown outcome. Call Resolve
	// once the attempt is over and its outcome is unknown.
	ErrAttempt = errors.New("reqlock: the lock is that of an idempotent request: its lease ends by itself, and then Resolve says what became of the request")
	// ErrForeign says that the lease is none of reqlock: a client of another library holds the lock,
	// or it has no TTL, or nobody holds it and WithMinHold keeps it locked.
	ErrForeign = errors.New("reqlock: the lock is held by no process of reqlock")
)

// A silentError is the core.ErrNotFound of Process.
type silentError struct{}

func (silentError) Error() string {
	return "reqlock: the process is silent: Redis has no record of it, and it may run nevertheless"
}

// Is makes it a core.ErrNotFound.
func (silentError) Is(target error) bool { return target == core.ErrNotFound }

// asError returns the error of a command without what must not get into a log.
func asError(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case strings.HasPrefix(err.Error(), "NOPERM"):
		return fmt.Errorf("%w: the user lacks a right that package inspect needs: %w", core.ErrUnavailable, command.Sanitize(err))
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("%w: %w", core.ErrUnavailable, command.ErrNoReply) // without the addresses in the text
	default:
		return fmt.Errorf("%w: %w", core.ErrUnavailable, command.Sanitize(err))
	}
}

// isOtherKey reports whether an error says that the key has another type.
func isOtherKey(err error) bool { return strings.HasPrefix(err.Error(), "WRONGTYPE") }
