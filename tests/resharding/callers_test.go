package resharding

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/reqlock/reqlock/core"
)

// outcomes counts the calls that were not simply served.
type outcomes struct{ busy, timedOut, unavailable, cancelled, lost, unreleased, uncertain atomic.Int64 }

// String lists the counts.
func (n *outcomes) String() string {
	return fmt.Sprintf("%d busy, %d timed out, %d unavailable, %d cancelled, %d lost, %d not released at once, %d uncertain attempts",
		n.busy.Load(), n.timedOut.Load(), n.unavailable.Load(), n.cancelled.Load(), n.lost.Load(), n.unreleased.Load(), n.uncertain.Load())
}

// pause is the pause of a caller after an immediate refusal.
const pause = 10 * time.Millisecond

// lockEndlessly waits without a limit, so it is always served.
func (l *load) lockEndlessly(caller string, locks *core.Locker, key string, section time.Duration) {
	if err := l.turn(l.t.Context(), caller, locks, key, true, section); err != nil {
		l.unexpected(caller, key, err)
	}
}

// lockInTime waits as long as WithWait allows.
func (l *load) lockInTime(caller string, locks *core.Locker, key string) {
	err := l.turn(l.t.Context(), caller, locks, key, false, 0)
	switch {
	case err == nil:
	case errors.Is(err, core.ErrWaitTimeout):
		l.outcomes.timedOut.Add(1)
	default:
		l.wantUnavailable(caller, key, err)
	}
}

// lockOrFail does not wait.
func (l *load) lockOrFail(caller string, locks *core.Locker, key string) {
	err := l.turn(l.t.Context(), caller, locks, key, false, 0)
	switch {
	case err == nil:
	case errors.Is(err, core.ErrBusy) && !errors.Is(err, core.ErrWaitTimeout):
		l.outcomes.busy.Add(1)
	default:
		l.wantUnavailable(caller, key, err)
	}
	time.Sleep(pause)
}

// wantUnavailable accepts the error of a call with a bounded wait only if Redis was
// unavailable.
func (l *load) wantUnavailable(caller, key string, err error) {
	if !errors.Is(err, core.ErrUnavailable) || errors.Is(err, core.ErrClosed) || errors.Is(err, core.ErrBusy) {
		l.unexpected(caller, key, err)
		return
	}
	l.outcomes.unavailable.Add(1)
	time.Sleep(pause)
}

// lockAndCancel cancels at a random time.
func (l *load) lockAndCancel(caller string, locks *core.Locker, key string) {
	ctx, cancel := context.WithTimeout(l.t.Context(), rand.N(60*time.Millisecond))
	defer cancel()
	err := l.turn(ctx, caller, locks, key, false, 0)
	switch {
	case err == nil:
	case errors.Is(err, context.DeadlineExceeded) &&
		(errors.Is(err, core.ErrWaitTimeout) != errors.Is(err, core.ErrUnavailable)):
		l.outcomes.cancelled.Add(1)
	default:
		l.unexpected(caller, key, err)
	}
}

// requestPeriod is how long all processes send the same idempotent request.
const requestPeriod = 100 * time.Millisecond

// sendRequest sends an idempotent request that other processes also send.
func (l *load) sendRequest(process int, locks *core.Locker, tag string) {
	key := fmt.Sprintf("%srequest%d", tag, l.now()/requestPeriod)
	caller, r := fmt.Sprintf("client %d", process), l.request(key)
	sent := l.now()
	attempt, err := locks.Begin(l.t.Context(), key, []byte("payload"))
	switch {
	case err == nil:
	case errors.Is(err, core.ErrInterrupted):
		r.recordInterrupted()
		time.Sleep(pause)
		return
	default:
		l.unexpected(caller, key, err)
		return
	}
	if answer, done := attempt.Replay(); done {
		r.recordReplay(string(answer))
		time.Sleep(pause)
		return
	}
	answer := fmt.Sprintf("done by %s at %v", caller, l.now())
	r.recordRun(answer)
	r.logf("%s sent it at %v, began attempt %d at %v", caller, sent, attempt.Number(), l.now())
	isLost := attempt.Lease().Context().Err() != nil
	err = attempt.Commit(l.t.Context(), []byte(answer))
	r.logf("%s committed at %v: %v", caller, l.now(), err)
	if err != nil || isLost {
		r.markUncertain()
		l.outcomes.uncertain.Add(1)
		if err != nil && !errors.Is(err, core.ErrUnavailable) {
			l.unexpected("commit by "+caller, key, err)
		}
	}
}
