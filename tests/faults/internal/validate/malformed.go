package validate

import (
	"fmt"
	"slices"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// malformed finds contradictions in the history itself. They are mistakes of the campaign,
// not of the lock.
func malformed(h *history.History) (found []Violation) {
	report := func(format string, args ...any) {
		found = append(found, Violation{Check: checkWellFormed, Text: fmt.Sprintf(format, args...)})
	}
	if h.TTL <= 0 || h.Ended < h.Begun || h.Ended <= 0 {
		report("ttl %d, begun at %d, ended at %d", h.TTL, h.Begun, h.Ended)
	}
	granted := map[string]*history.Op{}
	for i := range h.Ops {
		op := &h.Ops[i]
		switch {
		case op.Call <= 0, op.Return != 0 && op.Return < op.Call:
			report("%s has no time", callName(op))
		case op.Return == 0 && op.Outcome != history.None:
			report("%s has an outcome and never returned", callName(op))
		case op.Kind != history.LeaseEnd && op.Return != 0 && op.Outcome == history.None:
			report("%s returned without an outcome", callName(op))
		case op.Limit < history.Unlimited:
			report("%s has the limit %d", callName(op), op.Limit)
		}
		if op.Outcome != history.Granted {
			continue
		}
		if op.Lease == "" || op.ValidUntil == 0 {
			report("%s was granted without a name or a validity", callName(op))
		}
		if granted[op.Lease] != nil {
			report("%s was granted a lease of the same name as %s", callName(op), callName(granted[op.Lease]))
		}
		granted[op.Lease] = op
	}
	for i := range h.Ops {
		op := &h.Ops[i]
		ofLease := []history.Kind{history.Extend, history.Release, history.LeaseEnd, history.Commit, history.Seal, history.Abort}
		if slices.Contains(ofLease, op.Kind) && granted[op.Lease] == nil {
			report("%s names a lease that was not granted", callName(op))
		}
	}
	return found
}

// callName identifies a call for a reader of the history.
func callName(op *history.Op) string {
	text := fmt.Sprintf("%s(%s) of client %d in process %d, called at %d", op.Kind, op.Key, op.Client, op.Process, op.Call)
	if op.Lease != "" {
		text += ", lease " + op.Lease
	}
	switch {
	case op.Limit == history.Unlimited:
		text += ", shared"
	case op.IsShared():
		text += fmt.Sprintf(", one of %d permits", op.Limit)
	}
	if op.Fence != 0 {
		text += fmt.Sprintf(", fence %d", op.Fence)
	}
	return text
}
