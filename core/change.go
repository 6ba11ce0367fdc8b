package core

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/reqlock/reqlock/internal/bridge"
	"github.com/reqlock/reqlock/internal/engine"
)

// A Change is what an operator has changed, in an OperatorResolved, an OperatorRevoked or an
// OperatorFreed. All observers get the same Change, and must not write to it.
type Change struct {
	// By is who made the change, and Why is the reason: see AsOperator. Without it they are "".
	By, Why string
	// Before says what the record or the lease was: the state of a record, such as "unknown", read just
	// before the change, or "held by process ..., lease ..." with their ids. It is "" if Redis did not
	// reply. It begins with the digest of the key if Redis has only the digest.
	// After says what the change makes of it, such as "done", "no record", "revoked" or "free". Both may
	// be logged: they have no key, no token and no answer.
	Before, After string
}

// maxOperatorText limits the name and the reason of an operator, in bytes.
const maxOperatorText = 500

// operatorKey is the key of an operator in a context.
type operatorKey struct{}

// An operator is what AsOperator adds to a context.
type operator struct{ by, why string }

// AsOperator returns a context that says who acts, and why, for Locker.Resolve and for Revoke, FreeNow and
// Resolve of package inspect. Their events have both: see Change.
//
//	ctx, err := core.AsOperator(ctx, "ada", "the charge is at the provider")
//	err = locks.Resolve(ctx, key, core.Done(), record.Attempt)
//
// It returns an error if by is empty, and if one of them has more than 500 bytes, is not UTF-8, or has
// control characters, which could forge a line of a log. reqlock does not check who the caller is.
func AsOperator(ctx context.Context, by, why string) (context.Context, error) {
	mustContext(ctx)
	if strings.TrimSpace(by) == "" {
		return nil, errors.New("reqlock: AsOperator: the name (by) is empty: say who acts")
	}
	if err := checkOperatorText("the name (by)", by); err != nil {
		return nil, err
	}
	if err := checkOperatorText("the reason (why)", why); err != nil {
		return nil, err
	}
	return context.WithValue(ctx, operatorKey{}, operator{strings.Clone(by), strings.Clone(why)}), nil
}

// checkOperatorText returns an error for a text that does not fit into a line of a log.
func checkOperatorText(name, text string) error {
	switch {
	case len(text) > maxOperatorText:
		return fmt.Errorf("reqlock: AsOperator: %s has more than %d bytes: shorten it", name, maxOperatorText)
	case !utf8.ValidString(text):
		return fmt.Errorf("reqlock: AsOperator: %s is not UTF-8", name)
	case strings.ContainsFunc(text, isLineControl):
		return fmt.Errorf("reqlock: AsOperator: %s has control characters: write one line of plain text", name)
	}
	return nil
}

// isLineControl reports whether a character may end a line, or change what a reader sees of it.
func isLineControl(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Bidi_Control)
}

// newChange returns the event of a change that an operator makes under ctx. Its context does not end, so that
// an observer can store a change that took too long.
func newChange(ctx context.Context, c bridge.Change) Event {
	kept := context.WithoutCancel(ctx)
	who, _ := ctx.Value(operatorKey{}).(operator)
	return Event{
		Kind: EventKind(c.Kind), Key: EventKey{c.Key}, Shared: c.Shared, Err: c.Err, ctx: &kept,
		Change: &Change{By: who.by, Why: who.why, Before: c.Before, After: c.After},
	}
}

// noRecord says in a Change that there is no record.
const noRecord = "no record"

// stateBefore returns the state of the record that Resolve is about to change, for its event. It reads nothing
// if no observer gets the event.
func (l *Locker) stateBefore(ctx context.Context, r engine.ResolveRequest) string {
	if !l.settings.hasObserver() {
		return ""
	}
	found, err := l.engine.Outcome(ctx, r.Key)
	switch {
	case err != nil:
		return ""
	case found.State == engine.Absent:
		return noRecord
	}
	return recordStates[found.State].String()
}

// observeResolved sends the event of a Resolve that has changed the record, or has perhaps changed it.
func (l *Locker) observeResolved(ctx context.Context, r engine.ResolveRequest, before string, err error) {
	if !l.settings.hasObserver() {
		return
	}
	change := bridge.Change{Kind: int(OperatorResolved), Key: r.Key, Before: before, After: noRecord, Err: err}
	switch r.Resolution {
	case engine.ResolveDone:
		change.After = StateDone.String()
	case engine.ResolveAnswered:
		change.After = StateAnswered.String()
	case engine.ResolveNotDone:
	}
	event := newChange(ctx, change)
	event.Name, event.Idempotent, event.Attempt = l.settings.name, true, AttemptID{r.Seen}
	l.settings.notify(event)
}
