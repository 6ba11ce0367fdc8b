package check

import (
	"fmt"
	"time"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// patience is within what time whoever waits is served once nothing is broken
// any more, on a slow machine.
const patience = 10 * time.Second

// stranded finds who was forgotten: calls that never returned, waits that went
// on for long when all was well again or when they were over, and keys that nobody
// got any more.
func stranded(s *story) (found []Finding) {
	for _, key := range s.locks {
		for _, op := range s.calls[key] {
			if op.Return == 0 && s.killed(op.Process) == never {
				found = append(found, Finding{Check: "stranded", Text: name(op) + ", never returned"})
			}
			if late := s.late(op); late > int64(patience) {
				found = append(found, Finding{Check: "stranded", Text: fmt.Sprintf(
					"%s, waited for %v after it was to end, or all was well", name(op), time.Duration(late))})
			}
		}
		if op := s.unserved(key); op != nil {
			found = append(found, Finding{Check: "stranded", Text: fmt.Sprintf(
				"nobody got %s after all was well, though %s asked, and nobody held it throughout", key.key, name(op))})
		}
	}
	return found
}

// late returns for how long a call that waits went on after it should have come
// to an end: when its own wait is over, or, of one that waits for ever, from when
// all is well. A process that stands still is not late.
func (s *story) late(op *history.Op) int64 {
	if op.Return == 0 || op.Kind != history.Lock && op.Kind != history.Begin {
		return 0
	}
	from := op.Call + op.Wait
	if op.Wait == 0 {
		if s.Calm == 0 {
			return 0
		}
		from = max(op.Call, s.Calm)
		if well := s.unhurtSince(op); well != never {
			from = max(op.Call, min(s.Calm, well))
		}
	}
	if _, did := s.stood(op.Process, op.Call, op.Return); did {
		return 0
	}
	return op.Return - from
}

// unhurtSince returns since when nothing was broken any more that a call suffers from,
// when it returned; never if something was. Only of a quorum is there such a time
// before all was well.
func (s *story) unhurtSince(op *history.Op) (since int64) {
	if s.Deployment != "quorum" {
		return never
	}
	for _, t := range s.Troubles {
		if !isStall(t) && !unnoticed(t, op) && t.From <= op.Return {
			since = max(since, after(t.To, s.aftermath()))
		}
	}
	if since > op.Return {
		return never
	}
	return since
}

// unserved returns a call for a lock after all was well, if nobody was granted
// the lock any more, and nobody held it all the time either. A request that is
// answered, or refused since its outcome is not known, is served too; and whoever
// died with it may keep it for a while.
func (s *story) unserved(key lock) (asked *history.Op) {
	if s.Calm == 0 {
		return nil
	}
	calm := s.Calm
	if key.attempt {
		calm += s.TTL + s.Claim
	}
	for _, op := range s.calls[key] {
		switch {
		case op.Kind == history.Begin && op.Return >= s.Calm && op.Outcome != history.WaitTimeout:
			return nil
		case op.Kind == history.Lock, op.Kind == history.Begin && op.Wait > int64(headStart):
			if op.Call >= calm && s.killed(op.Process) == never {
				asked = op
			}
		}
	}
	for _, l := range s.leases[key] {
		if l.grant.Return >= s.Calm || s.believed(l) >= s.Ended || key.attempt && asked != nil && s.believed(l) >= asked.Call {
			return nil
		}
	}
	return asked
}
