package otellock_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

const (
	// brief is a command timeout that a busy machine keeps.
	brief = 500 * time.Millisecond
	// short is the TTL of leases that end, or are held for several TTLs. A command may take a
	// quarter of it.
	short = 4 * brief
)

// TestScenariosOnRedis produces what can happen to a lock, and compares all series with the wanted
// ones. So each scenario also shows that the gauges return to zero.
func TestScenariosOnRedis(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		opts []core.Option
		run  func(f *fixture)
		want string // each line is a value and a series without the name, which is "account"
	}{
		"a lock that is free": {nil, func(f *fixture) { f.release(f.lock(f.locks, "k")) }, `
			1 acquire.duration operation=lock outcome=acquired
			1 lease.grants operation=lock grant=free
			0 lease.active operation=lock
			1 hold.duration operation=lock lost=false`},
		"a wait in one process": {nil, waitInOneProcess, `
			2 acquire.duration operation=lock outcome=acquired
			1 lease.grants operation=lock grant=free
			1 lease.grants operation=lock grant=passed
			0 request.waiting operation=lock
			0 lease.active operation=lock
			2 hold.duration operation=lock lost=false`},
		"refused at once": {nil, refusedAtOnce, `
			1 acquire.duration operation=lock outcome=busy`},
		"the caller leaves": {nil, callerLeaves, `
			1 acquire.duration operation=lock outcome=canceled
			0 request.waiting operation=lock`},
		"the lease is lost": {[]core.Option{core.WithTTL(short)}, leaseIsLost, `
			1 acquire.duration operation=lock outcome=acquired
			1 lease.grants operation=lock grant=free
			1 lease.losses operation=lock cause=lost
			0 lease.active operation=lock
			1 hold.duration operation=lock lost=true`},
		"held too long": {[]core.Option{core.WithMaxHold(20 * time.Millisecond)}, heldTooLong, `
			1 acquire.duration operation=lock outcome=acquired
			1 lease.grants operation=lock grant=free
			1 lease.losses operation=lock cause=max_hold
			0 lease.active operation=lock
			1 hold.duration operation=lock lost=true`},
		"Close gives up": {nil, closeGivesUp, `
			1 acquire.duration operation=lock outcome=acquired
			1 lease.grants operation=lock grant=free
			1 lease.losses operation=lock cause=closed
			0 lease.active operation=lock
			1 hold.duration operation=lock lost=true`},
		"renewed and held long": {[]core.Option{core.WithTTL(short)}, heldLong, `
			1 acquire.duration operation=lock outcome=acquired
			1 lease.grants operation=lock grant=free
			+ lease.renewals operation=lock
			1 lease.overruns operation=lock
			0 lease.active operation=lock
			1 hold.duration operation=lock lost=false`},
		"Redis is away, and the request runs": {
			[]core.Option{core.WithCommandTimeout(brief), core.WithFailOpen(true), core.WithWait(0)}, runsUnlocked, `
			1 acquire.duration operation=lock outcome=unavailable error.type=unavailable
			1 request.unlocked operation=lock`,
		},
		"a renewal fails": {[]core.Option{core.WithTTL(short), core.WithCommandTimeout(brief)}, renewalFails, `
			1 acquire.duration operation=lock outcome=acquired
			1 lease.grants operation=lock grant=free
			+ lease.renewals operation=lock error.type=unavailable
			1 lease.losses operation=lock cause=lost
			0 lease.active operation=lock
			1 hold.duration operation=lock lost=true`},
		"a commit goes on, and is accepted": {[]core.Option{core.WithCommandTimeout(brief)}, commitGoesOn, `
			1 acquire.duration operation=attempt outcome=acquired
			1 lease.grants operation=attempt grant=free
			0 lease.active operation=attempt
			1 hold.duration operation=attempt lost=false
			1 attempt.endings operation=attempt ending=commit error.type=unavailable
			1 attempt.restorations operation=attempt
			1 attempt.unknown operation=attempt`},
		"attempts": {nil, endAttempts, `
			4 acquire.duration operation=attempt outcome=acquired
			1 acquire.duration operation=attempt outcome=replayed
			1 acquire.duration operation=attempt outcome=mismatch
			1 acquire.duration operation=attempt outcome=completed_unreplayable
			1 acquire.duration operation=attempt outcome=outcome_unknown
			4 lease.grants operation=attempt grant=free
			0 lease.active operation=attempt
			4 hold.duration operation=attempt lost=false
			1 attempt.endings operation=attempt ending=commit
			1 attempt.endings operation=attempt ending=done
			1 attempt.endings operation=attempt ending=abort
			1 attempt.endings operation=attempt ending=unknown
			+ attempt.unknown operation=attempt`},
		"a copy waits for its answer": {[]core.Option{core.WithWait(time.Minute)}, copyWaits, `
			1 acquire.duration operation=attempt outcome=acquired
			1 acquire.duration operation=attempt outcome=replayed
			1 lease.grants operation=attempt grant=free
			0 request.waiting operation=attempt
			0 lease.active operation=attempt
			1 hold.duration operation=attempt lost=false
			1 attempt.endings operation=attempt ending=commit`},
		"the record is restored": {nil, recordIsRestored, `
			1 acquire.duration operation=attempt outcome=acquired
			1 lease.grants operation=attempt grant=free
			0 lease.active operation=attempt
			1 lease.losses operation=attempt cause=lost
			1 hold.duration operation=attempt lost=true
			1 attempt.endings operation=attempt ending=commit
			1 attempt.restorations operation=attempt`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, test.opts...)
			test.run(f)
			await(t, f.reader, tableOf(t, test.want))
		})
	}
}

// tableOf returns the table of a text: each line is a value, or "+" for one above zero, and a series
// of the name "account".
func tableOf(t *testing.T, text string) table {
	t.Helper()
	want := table{}
	for line := range strings.Lines(strings.TrimSpace(text)) {
		value, series, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, ok := map[string]int64{"+": some, "0": 0, "1": 1, "2": 2, "4": 4}[value]
		if !ok {
			t.Fatalf("no value: %s", line)
		}
		want[series+" lock.name=account"] = n
	}
	return want
}

// A lock that another process hands over is counted as such. A waiter also checks Redis once a
// second. The time of the bubble passes only when all goroutines wait, so the message of the other
// process always comes before that check.
func TestHandoverBetweenProcesses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		instruments, reader := newInstruments(t)
		locks := locktest.New(t, core.WithObserver(instruments.Observe), core.WithName("account"))
		release := locks.Hold("k") // in another process, with the same observer
		released := lockNext(t, locks.Locker)
		locks.AwaitWaiting("k", 1)
		synctest.Wait() // the waiter is in the queue, and the process is subscribed
		release()
		suite.AwaitClosed(t, "the second holder has released", released)
		await(t, reader, tableOf(t, `
			2 acquire.duration operation=lock outcome=acquired
			1 lease.grants operation=lock grant=free
			1 lease.grants operation=lock grant=handed
			0 request.waiting operation=lock
			0 lease.active operation=lock
			2 hold.duration operation=lock lost=false`))
	})
}
