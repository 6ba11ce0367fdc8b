package check

import (
	"fmt"
	"time"

	"github.com/reqlock/reqlock/faults/internal/history"
)

// patience is within what time whoever waits is served once nothing is broken
// any more, on a slow machine.
const patience = 10 * time.Second

// stranded finds who was forgotten: calls that never returned, waits that went
// on for long when all was well again, and keys that nobody got any more.
func stranded(s *story) (found []Finding) {
	for _, key := range s.locks {
		for _, op := range s.calls[key] {
			if op.Return == 0 && s.killed(op.Process) == never {
				found = append(found, Finding{Check: "stranded", Text: name(op) + ", never returned"})
			}
			if s.Calm == 0 || op.Kind != history.Lock || op.Wait != 0 || s.returned(op) < s.Calm {
				continue
			}
			if waited := s.returned(op) - max(op.Call, s.Calm); op.Return != 0 && waited > int64(patience) {
				found = append(found, Finding{Check: "stranded", Text: fmt.Sprintf(
					"%s, waited for %v after all was well", name(op), time.Duration(waited))})
			}
		}
		if op := s.unserved(key); op != nil {
			found = append(found, Finding{Check: "stranded", Text: fmt.Sprintf(
				"nobody got %s after all was well, though %s asked, and nobody held it throughout", key.key, name(op))})
		}
	}
	return found
}

// unserved returns a call for a lock after all was well, if nobody was granted
// the lock any more, and nobody held it all the time either.
func (s *story) unserved(key lock) (asked *history.Op) {
	if s.Calm == 0 || key.attempt {
		return nil
	}
	for _, op := range s.calls[key] {
		if op.Kind == history.Lock && op.Call >= s.Calm && s.killed(op.Process) == never {
			asked = op
		}
	}
	for _, l := range s.leases[key] {
		if l.grant.Return >= s.Calm || s.believed(l) >= s.Ended {
			return nil
		}
	}
	return asked
}
