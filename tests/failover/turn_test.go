package failover

import (
	"errors"
	"time"

	"github.com/reqlock/reqlock/core"
)

// turn waits for a lock and has it for a moment. It waits until the end of the scene,
// because nobody knows how long a busy machine takes until the master is replaced. The
// part whose turn it is awaits it once all is healthy.
func (s *scene) turn(p *process, by, key string) {
	lease, err := p.locks.With(core.WithTTL(shortTTL), core.WithFencing(true)).Lock(s.ctx, key)
	if err != nil {
		if !s.isBrokenOff() {
			s.t.Errorf("%s on %s is stranded: %v", by, key, err)
		}
		return
	}
	one := hold{key: key, by: by, granted: time.Now(), fence: lease.Fence()}
	time.Sleep(s.ledger.takes)
	one.ended = time.Now()
	if until := lease.ValidUntil(); until.Before(one.ended) {
		one.ended = until
	}
	err = lease.Release(s.ctx)
	one.told = errors.Is(err, core.ErrLost)
	if err != nil && !one.told && !errors.Is(err, core.ErrUnavailable) {
		s.t.Errorf("%s on %s: released with %v", by, key, err)
	}
	s.history.add(one)
}
