package engine

import (
	"context"

	"github.com/reqlock/reqlock/internal/store"
)

// An Attempt is the idempotent request of a caller.
type Attempt = store.Attempt

// An Ending says how a hold of an attempt ends.
type Ending int

// The endings.
const (
	Abort     Ending = iota // as if it had not begun
	Commit                  // done, with an answer
	Seal                    // done, and its answer is not kept
	Interrupt               // nobody knows
)

// End ends the attempt.
func (h *Hold) End(ctx context.Context, ending Ending, record []byte) (Loss, error) {
	return h.Release(ctx)
}

// Number counts the attempts.
func (h *Hold) Number() int { return 1 }

// Resolve resolves.
func (e *Engine) Resolve(ctx context.Context, key string) (running bool, err error) { return false, nil }
