package check

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// never is a moment after all others.
const never = math.MaxInt64

// A lock is what excludes: attempts have locks of their own, whatever their key.
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

// A story is a history, told by leases.
type story struct {
	*history.History
	leases map[lock][]*lease       // in the order of the returns of their grants
	named  map[string]*lease       // by name
	calls  map[lock][]*history.Op  // in the order of their calls; without Told
	deaths map[int][]history.Death // of each process, in order
	losses []history.Trouble       // in order
	locks  []lock                  // all of them, in order
	// undialed is when calls of each process returned that had not got a connection.
	undialed map[int][]int64
	// overloaded says that the machine was too slow to judge who was late.
	overloaded bool
}

// read tells a history by leases.
func read(h *history.History) *story {
	s := &story{
		History: h, leases: map[lock][]*lease{}, named: map[string]*lease{},
		calls: map[lock][]*history.Op{}, deaths: map[int][]history.Death{}, undialed: map[int][]int64{},
		overloaded: Overloaded(h),
	}
	for _, trouble := range h.Troubles {
		if trouble.Loss {
			trouble.To = orNever(trouble.To)
			s.losses = append(s.losses, trouble)
		}
	}
	slices.SortFunc(s.losses, func(a, b history.Trouble) int { return cmp.Compare(a.From, b.From) })
	for _, death := range h.Deaths {
		death.To = orNever(death.To)
		s.deaths[death.Process] = append(s.deaths[death.Process], death)
	}
	for _, deaths := range s.deaths {
		slices.SortFunc(deaths, func(a, b history.Death) int { return cmp.Compare(a.From, b.From) })
	}
	ops := make([]*history.Op, len(h.Ops))
	for i := range h.Ops {
		ops[i] = &h.Ops[i]
	}
	slices.SortStableFunc(ops, func(a, b *history.Op) int { return cmp.Compare(a.Call, b.Call) })
	s.readLeases(ops)
	for _, op := range ops {
		s.readCall(op)
	}
	for l := range s.calls {
		s.locks = append(s.locks, l)
	}
	slices.SortFunc(s.locks, func(a, b lock) int { return cmp.Compare(a.key, b.key) })
	return s
}

func (s *story) readLeases(ops []*history.Op) {
	asked := map[string]int64{} // of each episode: the first call that is known of it
	for _, op := range ops {
		if op.Outcome != history.Granted {
			continue
		}
		if _, seen := asked[op.Episode]; !seen {
			asked[op.Episode] = op.Call
		}
		l := &lease{name: op.Lease, lock: lockOf(op), grant: op, asked: op.Call, known: op.ValidUntil, told: never}
		if op.Episode != "" {
			l.asked = asked[op.Episode]
		}
		l.lost = s.lossAfter(l.asked, l.lock.key)
		s.named[l.name] = l
		s.leases[l.lock] = append(s.leases[l.lock], l)
	}
	for _, leases := range s.leases {
		slices.SortStableFunc(leases, func(a, b *lease) int { return cmp.Compare(a.grant.Return, b.grant.Return) })
	}
}

func (s *story) readCall(op *history.Op) {
	l := s.named[op.Lease]
	if l != nil {
		l.known = max(l.known, op.ValidUntil)
	}
	if op.Outcome == history.Unavailable && strings.Contains(op.Error, noConnection) {
		s.undialed[op.Process] = append(s.undialed[op.Process], op.Return)
	}
	switch op.Kind {
	case history.Told:
		l.told = min(l.told, op.Call)
		l.withdrawn = l.withdrawn || op.Outcome == history.Deadline
		l.final = l.final || op.ValidUntil != 0
		return
	case history.Extend:
		l.extends = append(l.extends, op)
	case history.Release, history.Commit, history.Seal, history.Abort:
		if l.end == nil {
			l.end = op
			l.final = l.final || op.ValidUntil != 0
		}
	}
	of := lockOf(op)
	if l != nil {
		of = l.lock
	}
	s.calls[of] = append(s.calls[of], op)
}

// lossAfter returns when the first loss of a key begins that has not ended at a
// moment.
func (s *story) lossAfter(moment int64, key string) int64 {
	for _, loss := range s.losses {
		if moment < loss.To && isOf(loss, key) {
			return loss.From
		}
	}
	return never
}

// isOf reports whether a loss may be one of a key.
func isOf(loss history.Trouble, key string) bool {
	return len(loss.Keys) == 0 || slices.Contains(loss.Keys, key)
}

// killed returns when a process was killed.
func (s *story) killed(process int) int64 {
	for _, death := range s.deaths[process] {
		if death.To == never {
			return death.From
		}
	}
	return never
}

// stood returns when a process last began to stand still, if it did at any time
// between two moments.
func (s *story) stood(process int, from, to int64) (since int64, did bool) {
	for _, death := range s.deaths[process] {
		if death.To != never && death.From <= to && death.To >= from {
			since, did = death.From, true
		}
	}
	return since, did
}

// returned returns when a call returned, or when its process was killed, or
// never.
func (s *story) returned(op *history.Op) int64 {
	if op.Return != 0 {
		return op.Return
	}
	return s.killed(op.Process)
}

func orNever(moment int64) int64 {
	if moment == 0 {
		return never
	}
	return moment
}
