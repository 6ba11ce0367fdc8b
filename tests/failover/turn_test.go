package failover

import (
	"errors"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/tests/internal/history"
)

// turn waits for a lock and holds it for a moment. It waits until the end of the
// scenario, because the replacement of the master may take any time on a busy machine.
// The part that calls turn awaits its return once the deployment is healthy.
func (s *scenario) turn(p *process, holder, key string) {
	locks := p.locks.With(core.WithTTL(shortTTL), core.WithFencing(true))
	lease, err := s.history.Lock(s.ctx, locks, history.Op{Name: holder, Key: key})
	if err != nil {
		if !s.isAborted() {
			s.t.Errorf("%s on %s was not served: %v", holder, key, err)
		}
		return
	}
	time.Sleep(s.ledger.runTime)
	err = lease.Release(s.ctx)
	if err != nil && !errors.Is(err, core.ErrLost) && !errors.Is(err, core.ErrUnavailable) {
		s.t.Errorf("%s on %s: released with %v", holder, key, err)
	}
}
