package validate

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// never is later than all times.
const never = math.MaxInt64

// A lock is the unit of exclusion. Attempts have locks of their own, whatever their key.
type lock struct {
	key     string
	attempt bool
}

// lockOf returns the lock that a call is about.
func lockOf(op *history.Op) lock {
	switch op.Kind {
	case history.Begin, history.Commit, history.Seal, history.Abort:
		return lock{op.Key, true}
	default:
		return lock{op.Key, false}
	}
}

// A summary is a history ordered by locks and leases.
type summary struct {
	*history.History
	leases   map[lock][]*lease                // in the order in which their grants returned
	byName   map[string]*lease                // by name
	calls    map[lock][]*history.Op           // in the order of their calls, without LeaseEnd
	failures map[int][]history.ProcessFailure // by process, in order
	losses   []history.Disruption             // in order
	locks    []lock                           // all of them, in order
	// failedDials has the times at which calls of each process returned because they got no
	// connection.
	failedDials map[int][]int64
	// overloaded is set if the machine was too slow to find the cause of failed calls.
	overloaded bool
}

// summarize orders a history by locks and leases.
func summarize(h *history.History) *summary {
	s := &summary{
		History: h, leases: map[lock][]*lease{}, byName: map[string]*lease{},
		calls: map[lock][]*history.Op{}, failures: map[int][]history.ProcessFailure{}, failedDials: map[int][]int64{},
		overloaded: Overloaded(h),
	}
	for _, disruption := range h.Disruptions {
		if disruption.Loss {
			disruption.To = timeOrNever(disruption.To)
			s.losses = append(s.losses, disruption)
		}
	}
	slices.SortFunc(s.losses, func(a, b history.Disruption) int { return cmp.Compare(a.From, b.From) })
	for _, failure := range h.ProcessFailures {
		failure.To = timeOrNever(failure.To)
		s.failures[failure.Process] = append(s.failures[failure.Process], failure)
	}
	for _, failures := range s.failures {
		slices.SortFunc(failures, func(a, b history.ProcessFailure) int { return cmp.Compare(a.From, b.From) })
	}
	ops := make([]*history.Op, len(h.Ops))
	for i := range h.Ops {
		ops[i] = &h.Ops[i]
	}
	slices.SortStableFunc(ops, func(a, b *history.Op) int { return cmp.Compare(a.Call, b.Call) })
	s.addLeases(ops)
	for _, op := range ops {
		s.addCall(op)
	}
	for l := range s.calls {
		s.locks = append(s.locks, l)
	}
	slices.SortFunc(s.locks, func(a, b lock) int { return cmp.Compare(a.key, b.key) })
	return s
}

func (s *summary) addLeases(ops []*history.Op) {
	asked := map[string]int64{} // by episode: the first known call
	for _, op := range ops {
		if op.Outcome != history.Granted {
			continue
		}
		if _, seen := asked[op.Episode]; !seen {
			asked[op.Episode] = op.Call
		}
		l := &lease{name: op.Lease, lock: lockOf(op), grant: op, ttl: s.TTL, requested: op.Call, knownValidity: op.ValidUntil, contextEnded: never}
		if op.Episode != "" {
			l.requested = asked[op.Episode]
		}
		l.lossFrom = s.lossAfter(l.requested, l.lock.key)
		s.byName[l.name] = l
		s.leases[l.lock] = append(s.leases[l.lock], l)
	}
	for _, leases := range s.leases {
		slices.SortStableFunc(leases, func(a, b *lease) int { return cmp.Compare(a.grant.Return, b.grant.Return) })
	}
}

func (s *summary) addCall(op *history.Op) {
	l := s.byName[op.Lease]
	if l != nil {
		l.knownValidity = max(l.knownValidity, op.ValidUntil)
	}
	if op.Outcome == history.Unavailable && strings.Contains(op.Error, noConnection) {
		s.failedDials[op.Process] = append(s.failedDials[op.Process], op.Return)
	}
	switch op.Kind {
	case history.LeaseEnd:
		l.contextEnded = min(l.contextEnded, op.Call)
		l.callerEnded = l.callerEnded || op.Outcome == history.Deadline
		l.isValidityFinal = l.isValidityFinal || op.ValidUntil != 0
		return
	case history.Extend:
		l.extends = append(l.extends, op)
	case history.Release, history.Commit, history.Seal, history.Abort:
		if l.end == nil {
			l.end = op
			l.isValidityFinal = l.isValidityFinal || op.ValidUntil != 0
		}
	}
	of := lockOf(op)
	if l != nil {
		of = l.lock
	}
	s.calls[of] = append(s.calls[of], op)
}

// lossAfter returns the beginning of the first loss of a key that ends after a time, or
// never.
func (s *summary) lossAfter(moment int64, key string) int64 {
	for _, loss := range s.losses {
		if moment < loss.To && concernsKey(loss, key) {
			return loss.From
		}
	}
	return never
}

// concernsKey reports whether a loss may concern a key.
func concernsKey(loss history.Disruption, key string) bool {
	return len(loss.Keys) == 0 || slices.Contains(loss.Keys, key)
}

// killedAt returns when a process was killed, or never.
func (s *summary) killedAt(process int) int64 {
	for _, failure := range s.failures[process] {
		if failure.To == never {
			return failure.From
		}
	}
	return never
}

// pausedSince returns the beginning of the last pause of a process between two times, if
// there is one.
func (s *summary) pausedSince(process int, from, to int64) (since int64, did bool) {
	for _, failure := range s.failures[process] {
		if failure.To != never && failure.From <= to && failure.To >= from {
			since, did = failure.From, true
		}
	}
	return since, did
}

// returnedAt returns when a call returned, or when its process was killed, or never.
func (s *summary) returnedAt(op *history.Op) int64 {
	if op.Return != 0 {
		return op.Return
	}
	return s.killedAt(op.Process)
}

func timeOrNever(moment int64) int64 {
	if moment == 0 {
		return never
	}
	return moment
}
