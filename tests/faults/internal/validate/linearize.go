package validate

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// searchTimeout bounds the search for an order of the calls of one key. On a busy machine a search
// that ended had taken three minutes.
const searchTimeout = 5 * time.Minute

// A stepKind is the kind of a step.
type stepKind string

const (
	granting    stepKind = "granted"
	ending      stepKind = "ended"
	holding     stepKind = "still held"
	refusing    stepKind = "refused"
	replaying   stepKind = "replayed"
	interrupted stepKind = "interrupted"
	committing  stepKind = "committed"
	aborting    stepKind = "aborted"
)

// A step is an event on a server at some time during a call.
type step struct {
	op   *history.Op
	from int64 // the earliest time of the event; 0 means the time of the call
	// earlier replaces from if no order fits otherwise; 0 if the event cannot have been earlier.
	earlier int64
	kind    stepKind
	lease   string
	fence   int64 // of the lease
	free    int64 // see lease.freeFrom
	// before is, in a grant, the number of steps of leases with lower fencing numbers.
	before int
	// episode is that of the lease. In a grant, handedOff is set if an earlier lease of the
	// episode was handed off to it; in an end, handsOff is set if a later lease follows.
	episode             string
	handedOff, handsOff bool

	// The following fields belong to attempts.
	number        int
	indeterminate int        // how many other attempts may have begun before it without a known result
	epoch         int        // how many losses of data had ended before it
	commit        pendingEnd // of its attempt, if its effect is unknown
	abort         pendingEnd // of its attempt, if its effect is unknown
	mayBeStale    bool       // in a replay: the answer may come from a stale attempt
}

// A pendingEnd is an end of an attempt that may take effect from some time on.
type pendingEnd struct {
	from   int64 // 0 if there is none
	record string
}

// earliest returns the earliest time of the event.
func (s *step) earliest() int64 {
	if s.from != 0 {
		return s.from
	}
	return s.op.Call
}

// allowFrom notes that the event may have been at a time, if that is earlier.
func (s *step) allowFrom(time int64) {
	if time < s.earliest() {
		s.earlier = time
	}
}

// isPossible reports whether it may have taken effect by a time.
func (m pendingEnd) isPossible(by int64) bool { return m.from != 0 && m.from <= by }

// String describes the step in a picture.
func (s *step) String() string {
	text := fmt.Sprintf("%s: %s", s.op.Kind, s.kind)
	if s.lease != "" {
		text += " " + s.lease
	}
	if s.fence != 0 {
		text += fmt.Sprintf(", fence %d", s.fence)
	}
	if s.number != 0 {
		text += fmt.Sprintf(", attempt %d", s.number)
	}
	if s.op.Record != "" {
		text += fmt.Sprintf(", %q", s.op.Record)
	}
	return text
}

// describeStep returns details of a step for a picture.
func describeStep(metadata any) string {
	s := metadata.(*step)
	text := fmt.Sprintf("process %d", s.op.Process)
	if s.free != 0 {
		text += fmt.Sprintf(", may be free from %d", s.free)
	}
	return text
}

// linearize checks whether the model allows some order of the steps. If it does not, it allows
// an earlier time for one of them and searches again, as long as there is such a step.
func linearize(s *summary, check string, key lock, model porcupine.Model, steps []*step) []Violation {
	deadline := time.Now().Add(searchTimeout)
	for {
		operations, left := operationsOf(steps), max(1, time.Until(deadline))
		switch porcupine.CheckOperationsTimeout(model, operations, left) {
		case porcupine.Ok:
			return nil
		case porcupine.Unknown:
			return []Violation{{Check: check, Text: fmt.Sprintf("the search for an order of %s did not end within %v: %d steps", key.key, searchTimeout, len(steps))}}
		}
		_, info := porcupine.CheckOperationsVerbose(model, operations, left)
		unfit := firstUnordered(info, steps)
		if unfit != nil && allowEarlier(unfit, steps) {
			continue
		}
		text := fmt.Sprintf("no order explains the calls of %s", key.key)
		if unfit != nil {
			text += fmt.Sprintf("; the first one that does not fit is %s (%s)", callName(unfit.op), unfit)
		}
		return []Violation{{Check: check, Text: text, Picture: func(path string) error {
			info.AddAnnotations(s.annotations())
			return porcupine.VisualizePath(model, info, path)
		}}}
	}
}

// operationsOf returns the operations of the steps for Porcupine.
func operationsOf(steps []*step) []porcupine.Operation {
	slices.SortStableFunc(steps, func(a, b *step) int { return cmp.Compare(a.earliest(), b.earliest()) })
	operations := make([]porcupine.Operation, len(steps))
	for i, one := range steps {
		operations[i] = porcupine.Operation{
			ClientId: one.op.Client, Input: one, Call: one.earliest(), Return: one.op.Return, Metadata: one,
		}
	}
	return operations
}

// allowEarlier allows the earlier time for a step: for the one that does not fit, or else for the
// last of the others that may then have been at the same time. It reports whether there is one.
func allowEarlier(unfit *step, steps []*step) bool {
	next := unfit
	if unfit.earlier == 0 {
		next = nil
		for _, one := range steps {
			concurrent := one.earlier <= unfit.op.Return && one.op.Return >= unfit.earliest()
			if one.earlier != 0 && concurrent && (next == nil || one.op.Return > next.op.Return) {
				next = one
			}
		}
	}
	if next == nil {
		return false
	}
	next.from, next.earlier = next.earlier, 0
	return true
}

// firstUnordered returns, of the steps that the longest possible order does not contain,
// the one that returned first.
func firstUnordered(info porcupine.LinearizationInfo, steps []*step) (first *step) {
	longest := map[*step]bool{}
	for _, partials := range info.PartialLinearizationsOperations() {
		for _, partial := range partials {
			if len(partial) <= len(longest) {
				continue
			}
			clear(longest)
			for _, operation := range partial {
				longest[operation.Input.(*step)] = true
			}
		}
	}
	for _, one := range steps {
		if !longest[one] && (first == nil || one.op.Return < first.op.Return) {
			first = one
		}
	}
	return first
}

// annotations returns the disruptions and the failures of processes for a picture.
func (s *summary) annotations() (all []porcupine.Annotation) {
	for _, disruption := range s.Disruptions {
		colour := "#ffe0b0"
		if disruption.Loss {
			colour = "#ffb0b0"
		}
		all = append(all, porcupine.Annotation{
			Tag: "broken", Start: disruption.From, End: min(timeOrNever(disruption.To), s.Ended), Description: disruption.Name, BackgroundColor: colour,
		})
	}
	for _, failure := range s.ProcessFailures {
		text := "killed"
		if failure.To != 0 {
			text = "paused"
		}
		all = append(all, porcupine.Annotation{
			Tag: fmt.Sprintf("process %d", failure.Process), Start: failure.From, End: failure.To, Description: text, BackgroundColor: "#c0c0c0",
		})
	}
	return all
}
