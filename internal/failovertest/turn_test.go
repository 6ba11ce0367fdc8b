package failovertest

import (
	"context"
	"errors"
	"time"

	"github.com/reqlock/reqlock/core"
)

// turn waits for a lock and has it for a moment.
func (s *scene) turn(p *process, by, key string) {
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	lease, err := p.locks.With(core.WithTTL(shortTTL), core.WithFencing(true)).Lock(ctx, key)
	if err != nil {
		s.t.Errorf("%s on %s is stranded: %v", by, key, err)
		return
	}
	one := hold{key: key, by: by, granted: time.Now(), fence: lease.Fence()}
	time.Sleep(s.ledger.takes)
	one.ended = time.Now()
	if until := lease.ValidUntil(); until.Before(one.ended) {
		one.ended = until
	}
	err = lease.Release(ctx)
	one.told = errors.Is(err, core.ErrLost)
	if err != nil && !one.told && !errors.Is(err, core.ErrUnavailable) {
		s.t.Errorf("%s on %s: released with %v", by, key, err)
	}
	s.history.add(one)
}
