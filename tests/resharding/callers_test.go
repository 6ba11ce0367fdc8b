package resharding

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/tests/internal/history"
)

// pause is the pause of a caller after an immediate refusal.
const pause = 10 * time.Millisecond

// lockEndlessly waits without a limit, so it is always served.
func (l *load) lockEndlessly(caller string, locks *core.Locker, key string, section time.Duration) {
	l.want(caller, key, l.turn(l.t.Context(), caller, locks, key, section))
}

// lockInTime waits as long as WithWait allows.
func (l *load) lockInTime(caller string, locks *core.Locker, key string) {
	err := l.turn(l.t.Context(), caller, locks, key, 0)
	if l.want(caller, key, err, history.WaitTimeout, history.Unavailable) == history.Unavailable {
		time.Sleep(pause)
	}
}

// lockOrFail does not wait.
func (l *load) lockOrFail(caller string, locks *core.Locker, key string) {
	l.want(caller, key, l.turn(l.t.Context(), caller, locks, key, 0), history.Busy, history.Unavailable)
	time.Sleep(pause)
}

// lockAndCancel cancels at a random time.
func (l *load) lockAndCancel(caller string, locks *core.Locker, key string) {
	ctx, cancel := context.WithTimeout(l.t.Context(), rand.N(60*time.Millisecond))
	defer cancel()
	err := l.turn(ctx, caller, locks, key, 0)
	l.want(caller, key, err, history.Deadline)
	if err != nil && errors.Is(err, core.ErrWaitTimeout) == errors.Is(err, core.ErrUnavailable) {
		l.t.Errorf("%s of %s: neither busy nor unavailable: %v", caller, key, err)
	}
}

// want fails the test with an error that is none of these outcomes, and returns the outcome.
func (l *load) want(caller, key string, err error, allowed ...history.Outcome) history.Outcome {
	outcome := history.OutcomeOf(err, history.Done)
	if outcome != history.Done && !slices.Contains(allowed, outcome) {
		l.t.Errorf("%s of %s: %v", caller, key, err)
	}
	return outcome
}

// requestPeriod is how long all processes send the same idempotent request.
const requestPeriod = 100 * time.Millisecond

// sendRequest sends an idempotent request that other processes also send.
func (l *load) sendRequest(process int, locks *core.Locker, tag string) {
	key := fmt.Sprintf("%srequest%d", tag, time.Since(l.started)/requestPeriod)
	caller := fmt.Sprintf("client %d", process)
	begin := l.history.Begin(history.Op{Process: process, Kind: history.Begin, Key: key})
	attempt, err := locks.Begin(l.t.Context(), key, []byte("payload"))
	if err != nil {
		l.history.End(begin, l.want(caller, key, err, history.Interrupted), nil)
		time.Sleep(pause)
		return
	}
	if answer, done := attempt.Replay(); done {
		l.history.End(begin, history.Replayed, func(op *history.Op) { op.Record = string(answer) })
		time.Sleep(pause)
		return
	}
	token, answer := attempt.Lease().Token(), fmt.Sprintf("done by %s in request %d", caller, begin.Call)
	l.history.Effect(history.Effect{Process: process, ID: answer, Key: key, Number: attempt.Number(), Lease: token})
	l.history.End(begin, history.Granted, func(op *history.Op) {
		op.Lease, op.Number, op.Record = token, attempt.Number(), answer
	})
	isLost := attempt.Lease().Context().Err() != nil
	commit := l.history.Begin(history.Op{Process: process, Kind: history.Commit, Key: key, Lease: token, Record: answer})
	outcome := l.want("commit by "+caller, key, attempt.Commit(l.t.Context(), []byte(answer)), history.Unavailable)
	if isLost { // the answer may not be stored
		outcome = history.Lost
	}
	l.history.End(commit, outcome, nil)
}
