package quorum

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/reqlock/reqlock/core"
)

// short is how long a lock is held that is to be given back at once.
const short = 2 * time.Millisecond

// A way is one to lock a key for a moment. It waits for the key as long as
// anything may take, and may be used on any goroutine.
type way struct {
	name string
	lock func(p *process, by, key string) error
}

var (
	byLock = way{"Lock", func(p *process, by, key string) error {
		lease, err := p.locks.With(core.WithWait(patience)).Lock(context.Background(), key)
		if err != nil {
			return err
		}
		return p.sectionOf(lease, by)
	}}
	byDo = way{"Do", func(p *process, by, key string) error {
		return p.locks.With(core.WithWait(patience)).Do(context.Background(), key, func(ctx context.Context) error {
			p.history.section(ctx, by, short)
			return nil
		})
	}}
	// byTryLock does not wait, and may find the key taken. It has the time of one
	// command.
	byTryLock = way{"TryLock", func(p *process, by, key string) error {
		asked := time.Now()
		lease, err := p.locks.TryLock(context.Background(), key)
		if errors.Is(err, core.ErrBusy) || p.excused(err, asked) {
			return nil
		} else if err != nil {
			return err
		}
		return p.sectionOf(lease, by)
	}}
	byHTTP = way{"HTTP", func(p *process, by, key string) error {
		got, err := p.post("/wait", by, key)
		if err == nil && got.status != http.StatusNoContent {
			err = fmt.Errorf("answered %+v", got)
		}
		return err
	}}
)

// sectionOf is a section that ends with the release of the lease. That may remain
// unconfirmed where a node has lost its vote: the others are no majority.
func (p *process) sectionOf(lease *core.Lease, by string) error {
	p.history.section(lease.Context(), by, short)
	if err := lease.Release(context.Background()); !errors.Is(err, core.ErrUnavailable) {
		return err
	}
	return nil
}

// excused reports whether a call that was made at that time has found Redis unavailable,
// and the machine stood still meanwhile.
func (p *process) excused(err error, asked time.Time) bool {
	return errors.Is(err, core.ErrUnavailable) && p.pulse.wasAway(asked)
}

func ways() []way { return []way{byLock, byDo, byTryLock, byHTTP} }
