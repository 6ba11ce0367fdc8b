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
	lease, err := p.locks.With(core.WithTTL(shortTTL), core.WithFencing(true)).Lock(s.ctx, key)
	if err != nil {
		if !s.isAborted() {
			s.t.Errorf("%s on %s was not served: %v", holder, key, err)
		}
		return
	}
	one := &history.Hold{Key: key, Holder: holder, Granted: s.history.Now(), Fence: lease.Fence()}
	time.Sleep(s.ledger.runTime)
	one.Ended = min(s.history.Now(), s.history.At(lease.ValidUntil()))
	err = lease.Release(s.ctx)
	one.Lost = errors.Is(err, core.ErrLost)
	if err != nil && !one.Lost && !errors.Is(err, core.ErrUnavailable) {
		s.t.Errorf("%s on %s: released with %v", holder, key, err)
	}
	s.history.Add(one)
}
