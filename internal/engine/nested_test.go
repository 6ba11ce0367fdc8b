package engine

import (
	"context"
	"testing"
	"time"
)

func TestNestedTurnsAreKeptUntilTheyEnd(t *testing.T) {
	t.Parallel()
	e, _, _ := newEngine()
	defer func() { _ = e.Close(t.Context()) }()
	h := hold(t, e, request(0))
	released, left := h.Nest(t.Context()), h.Nest(t.Context())
	if loss := released.Release(); loss != NotLost {
		t.Errorf("the loss of the first turn is %v", loss)
	}
	if _, kept := h.nested[left]; !kept || len(h.nested) != 1 {
		t.Errorf("%d turns are kept after one of two was released", len(h.nested))
	}
	releaseLost(t, h, NotLost)
	if len(h.nested) != 0 || left.Context().Err() == nil {
		t.Errorf("%d turns are kept after the release of the hold", len(h.nested))
	}
	if loss := left.Release(); loss != Taken {
		t.Errorf("the loss of the second turn is %v", loss)
	}
	if loss := released.Release(); loss != NotLost {
		t.Errorf("the loss of the first turn has become %v", loss)
	}
}

// countingContext counts the functions that wait for the end of the context.
type countingContext struct {
	context.Context
	waiting int
}

func (c *countingContext) AfterFunc(func()) (stop func() bool) {
	c.waiting++
	return func() bool {
		c.waiting--
		return true
	}
}

func (c *countingContext) Value(any) any { return nil } // otherwise package context would use the parent instead

// Neither a turn that was refused nor one that has ended leaves a function in the
// context of its caller.
func TestNestedTurnsLeaveNothingInTheirParent(t *testing.T) {
	t.Parallel()
	e, _, _ := newEngine()
	defer func() { _ = e.Close(t.Context()) }()
	parent := &countingContext{Context: t.Context()}
	h := hold(t, e, request(0))
	released, lost := h.Nest(parent), h.Nest(parent)
	if parent.waiting != 2 {
		t.Fatalf("%d turns wait for the end of their parent, want 2", parent.waiting)
	}
	released.Release()
	release(t, h)
	if n := h.Nest(parent); n != nil || parent.waiting != 0 || lost.Release() != Taken {
		t.Errorf("%d turns wait for the end of their parent", parent.waiting)
	}
}

func TestEndedHoldsHaveNoNestedTurns(t *testing.T) {
	t.Parallel()
	e, _, _ := newEngine()
	h := hold(t, e, request(0))
	releaseLost(t, h, NotLost)
	if n := h.Nest(context.WithoutCancel(h.Context())); n != nil || len(h.nested) != 0 {
		t.Error("a released hold has a turn")
	}
	lost := hold(t, e, request(0))
	_ = e.Close(canceledContext())
	if n := lost.Nest(t.Context()); n != nil || len(lost.nested) != 0 {
		t.Error("a lost hold has a turn")
	}
	releaseLost(t, lost, Closed)
	_ = e.Close(t.Context())
}

// LoseNested ends the holds within a hold that is about to be released. A nested hold that its
// caller has released has no cause of a loss.
func TestLoseNestedBeforeRelease(t *testing.T) {
	t.Parallel()
	e, s, _ := newEngine()
	h := hold(t, e, request(0))
	released, lost := h.Nest(t.Context()), h.Nest(t.Context())
	if loss, err := released.Extend(t.Context(), time.Minute); loss != NotLost || err != nil || s.count("renew") != 1 {
		t.Errorf("extend: %v, %v, %d renewals", loss, err, s.count("renew"))
	}
	released.Release()
	h.LoseNested()
	for n, want := range map[*Nested]error{released: context.Canceled, lost: lossError{Taken}} {
		if got := context.Cause(n.Context()); got != want { //nolint:errorlint // the very cause
			t.Errorf("the cause is %v, want %v", got, want)
		}
		if loss, err := n.Extend(t.Context(), time.Minute); loss != Taken || err != nil || s.count("renew") != 1 {
			t.Errorf("extend after the end: %v, %v, %d renewals", loss, err, s.count("renew"))
		}
	}
	if loss := lost.Release(); loss != Taken {
		t.Errorf("the loss is %v", loss)
	}
	release(t, h)
	if h.Context().Err() == nil {
		t.Error("the context of the hold has not ended")
	}
}
