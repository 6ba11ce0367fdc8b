package kind

import (
	"context"
	"errors"
)

// IsEndOf reports whether a context has ended, and an error says so. The client has disconnected or a
// deadline is over, so the error is no mistake of the program.
func IsEndOf(ctx context.Context, err error) bool {
	return ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx)))
}
