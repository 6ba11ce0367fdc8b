package validate

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// searchTimeout is for how long one key may be thought about.
const searchTimeout = time.Minute

// A stepKind is what a step does.
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

// A step is something that a server did at one moment of a call.
type step struct {
	op    *history.Op
	kind  stepKind
	lease string
	fence int64
	free  int64 // see lease.free

	// What follows is of attempts.
	number        int
	indeterminate int        // how many others may have begun before it unheard
	epoch         int        // how many losses of data there were before it
	commit        pendingEnd // of its attempt, if it may come to be
	abort         pendingEnd // the same
	mayBeStale    bool       // of a replay: a ghost may have given the answer
}

// A pendingEnd is something that may happen from some moment on.
type pendingEnd struct {
	from   int64 // 0 if it does not
	record string
}

// isPossible reports whether it may have happened by a moment.
func (m pendingEnd) isPossible(by int64) bool { return m.from != 0 && m.from <= by }

// String says what the step is, in a picture.
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

// describeStep tells more of a step, where somebody points at it in a picture.
func describeStep(metadata any) string {
	s := metadata.(*step)
	text := fmt.Sprintf("process %d", s.op.Process)
	if s.free != 0 {
		text += fmt.Sprintf(", may be free from %d", s.free)
	}
	return text
}

// linearize finds whether there is an order of the steps that the model allows.
func linearize(s *summary, check string, key lock, model porcupine.Model, steps []*step) []Violation {
	slices.SortStableFunc(steps, func(a, b *step) int { return cmp.Compare(a.op.Call, b.op.Call) })
	operations := make([]porcupine.Operation, len(steps))
	for i, one := range steps {
		operations[i] = porcupine.Operation{
			ClientId: one.op.Client, Input: one, Call: one.op.Call, Return: one.op.Return, Metadata: one,
		}
	}
	verdict := porcupine.CheckOperationsTimeout(model, operations, searchTimeout)
	switch verdict {
	case porcupine.Ok:
		return nil
	case porcupine.Unknown:
		return []Violation{{Check: check, Text: fmt.Sprintf("%s could not be judged within %v: %d steps", key.key, searchTimeout, len(steps))}}
	}
	_, info := porcupine.CheckOperationsVerbose(model, operations, searchTimeout)
	text := fmt.Sprintf("no order explains what became of %s", key.key)
	if unexplained := firstUnordered(info, steps); unexplained != nil {
		text += fmt.Sprintf("; the first that does not fit is %s (%s)", callName(unexplained.op), unexplained)
	}
	return []Violation{{Check: check, Text: text, Picture: func(path string) error {
		info.AddAnnotations(s.annotations())
		return porcupine.VisualizePath(model, info, path)
	}}}
}

// firstUnordered returns the step that returned first of those that the longest
// order which is possible does not reach.
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

// annotations returns what was broken, and who died or stood still, for a
// picture.
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
			text = "stands still"
		}
		all = append(all, porcupine.Annotation{
			Tag: fmt.Sprintf("process %d", failure.Process), Start: failure.From, End: failure.To, Description: text, BackgroundColor: "#c0c0c0",
		})
	}
	return all
}
