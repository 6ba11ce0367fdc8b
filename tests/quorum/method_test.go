package quorum

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/reqlock/reqlock/core"
)

// sectionTime is how long a short critical section lasts.
const sectionTime = 2 * time.Millisecond

// A method is a way to lock a key for a short section. Except TryLock it waits for the
// key. It may run on any goroutine.
type method struct {
	name string
	lock func(p *process, holder, key string) error
}

var (
	byLock = method{"Lock", func(p *process, holder, key string) error {
		lease, err := p.locks.With(core.WithWait(patience)).Lock(context.Background(), key)
		if err != nil {
			return err
		}
		return p.useLease(lease, holder)
	}}
	byDo = method{"Do", func(p *process, holder, key string) error {
		return p.locks.With(core.WithWait(patience)).Do(context.Background(), key, func(ctx context.Context) error {
			runSection(ctx, p.history, holder, sectionTime)
			return nil
		})
	}}
	// byTryLock does not wait, and the key may be busy. It has the time of one command.
	byTryLock = method{"TryLock", func(p *process, holder, key string) error {
		started := time.Now()
		lease, err := p.locks.TryLock(context.Background(), key)
		if errors.Is(err, core.ErrBusy) || p.mayExcuse(err, started) {
			return nil
		} else if err != nil {
			return err
		}
		return p.useLease(lease, holder)
	}}
	byHTTP = method{"HTTP", func(p *process, holder, key string) error {
		got, err := p.post("/wait", holder, key)
		if err == nil && got.status != http.StatusNoContent {
			err = fmt.Errorf("answered %+v", got)
		}
		return err
	}}
)

func methods() []method { return []method{byLock, byDo, byTryLock, byHTTP} }

// useLease runs a section and releases the lease. The release may be unconfirmed: after
// a node has lost its vote, the other voters are no majority.
func (p *process) useLease(lease *core.Lease, holder string) error {
	runSection(lease.Context(), p.history, holder, sectionTime)
	if err := lease.Release(context.Background()); !errors.Is(err, core.ErrUnavailable) {
		return err
	}
	return nil
}

// mayExcuse reports whether err is that Redis is unavailable, and the cause may be that
// the machine did not run this process since the call.
func (p *process) mayExcuse(err error, since time.Time) bool {
	return errors.Is(err, core.ErrUnavailable) && p.stalls.stalledSince(since)
}
