package otellock_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/otellock"
)

// unavailable is an error as the Locker makes it.
var unavailable error = &core.Error{Kind: core.ErrUnavailable, Cause: errors.New("dial tcp: refused")}

// unnamed marks an event without a name in the table of a test. The others have the name "account".
const unnamed = "-"

func TestEachEventIsRecorded(t *testing.T) {
	t.Parallel()
	const lock, attempt = " lock.name=account operation=lock", " lock.name=account operation=attempt"
	const shared = " lock.name=account lock.shared=true operation=lock"
	for name, test := range map[string]struct {
		event core.Event
		want  table
	}{
		"acquired": {
			core.Event{Kind: core.Acquired, Grant: core.GrantFree},
			table{"acquire.duration" + lock + " outcome=acquired": 1, "lease.active" + lock: 1, "lease.grants grant=free" + lock: 1},
		},
		"handed over": {
			core.Event{Kind: core.Acquired, Grant: core.GrantHanded, Queued: true, Idempotent: true},
			table{
				"acquire.duration" + attempt + " outcome=acquired": 1, "lease.active" + attempt: 1,
				"lease.grants grant=handed" + attempt: 1, "request.waiting" + attempt: -1,
			},
		},
		"shared": {
			core.Event{Kind: core.Acquired, Grant: core.GrantFree, Queued: true, Shared: true},
			table{
				"acquire.duration" + shared + " outcome=acquired": 1, "lease.active" + shared: 1,
				"lease.grants grant=free" + shared: 1, "request.waiting" + shared: -1,
			},
		},
		"without a name": {
			core.Event{Kind: core.Waiting, Name: unnamed},
			table{"request.waiting operation=lock": 1},
		},
		"waiting":  {core.Event{Kind: core.Waiting}, table{"request.waiting" + lock: 1}},
		"replayed": {core.Event{Kind: core.Replayed, Idempotent: true}, table{"acquire.duration" + attempt + " outcome=replayed": 1}},
		"refused":  {core.Event{Kind: core.Refused, Err: core.ErrBusy}, table{"acquire.duration" + lock + " outcome=busy": 1}},
		"refused after a wait": {
			core.Event{Kind: core.Refused, Err: core.ErrWaitTimeout, Queued: true},
			table{"acquire.duration" + lock + " outcome=wait_timeout": 1, "request.waiting" + lock: -1},
		},
		"refused by Redis": {
			core.Event{Kind: core.Refused, Err: unavailable},
			table{"acquire.duration error.type=unavailable" + lock + " outcome=unavailable": 1},
		},
		"refused for another reason": {
			core.Event{Kind: core.Refused, Err: errors.New("secret")},
			table{"acquire.duration error.type=_OTHER" + lock + " outcome=_OTHER": 1},
		},
		"released": {
			core.Event{Kind: core.Released},
			table{"lease.active" + lock: -1, "hold.duration" + lock + " lost=false": 1},
		},
		"released without confirmation": {
			core.Event{Kind: core.Released, Err: unavailable},
			table{"lease.active" + lock: -1, "hold.duration" + lock + " lost=false": 1},
		},
		"released after the loss": {
			core.Event{Kind: core.Released, Err: core.ErrMaxHold},
			table{"lease.active" + lock: -1, "hold.duration" + lock + " lost=true": 1},
		},
		"released after Close": {
			core.Event{Kind: core.Released, Err: core.ErrClosed},
			table{"lease.active" + lock: -1, "hold.duration" + lock + " lost=true": 1},
		},
		"lost":               {core.Event{Kind: core.Lost, Err: core.ErrLost}, table{"lease.losses cause=lost" + lock: 1}},
		"held too long":      {core.Event{Kind: core.Lost, Err: core.ErrMaxHold}, table{"lease.losses cause=max_hold" + lock: 1}},
		"lost by Close":      {core.Event{Kind: core.Lost, Err: core.ErrClosed}, table{"lease.losses cause=closed" + lock: 1}},
		"renewed":            {core.Event{Kind: core.Renewed}, table{"lease.renewals" + lock: 1}},
		"not renewed":        {core.Event{Kind: core.Renewed, Err: unavailable}, table{"lease.renewals error.type=unavailable" + lock: 1}},
		"held long":          {core.Event{Kind: core.HeldLong}, table{"lease.overruns" + lock: 1}},
		"held long, again":   {core.Event{Kind: core.HeldLong, Repeated: true}, table{}},
		"committed late":     {core.Event{Kind: core.Committed, Ending: core.EndCommit, Idempotent: true, Repeated: true}, table{}},
		"committed":          {core.Event{Kind: core.Committed, Ending: core.EndCommit, Idempotent: true}, table{"attempt.endings ending=commit" + attempt: 1}},
		"released by Commit": {released(core.EndCommit, nil), table{"lease.active" + attempt: -1, "hold.duration" + attempt + " lost=false": 1}},
		"commit failed": {
			core.Event{Kind: core.Committed, Ending: core.EndCommit, Idempotent: true, Err: unavailable},
			table{"attempt.endings ending=commit error.type=unavailable" + attempt: 1},
		},
		"commit after the loss": {
			core.Event{Kind: core.Committed, Ending: core.EndDone, Idempotent: true, Err: core.ErrLost},
			table{"attempt.endings ending=done error.type=lost" + attempt: 1},
		},
		"released by Abort": {
			released(core.EndAbort, nil),
			table{"lease.active" + attempt: -1, "hold.duration" + attempt + " lost=false": 1, "attempt.endings ending=abort" + attempt: 1},
		},
		"unknown after the loss": {
			released(core.EndUnknown, core.ErrLost),
			table{"lease.active" + attempt: -1, "hold.duration" + attempt + " lost=true": 1, "attempt.endings ending=unknown" + attempt: 1},
		},
		"unknown failed": {
			released(core.EndUnknown, unavailable),
			table{
				"lease.active" + attempt: -1, "hold.duration" + attempt + " lost=false": 1,
				"attempt.endings ending=unknown error.type=unavailable" + attempt: 1,
			},
		},
		"restored": {core.Event{Kind: core.Restored, Idempotent: true}, table{"attempt.restorations" + attempt: 1}},
		"searched": {core.Event{Kind: core.Searched, Name: unnamed, Open: 2, Took: time.Second}, table{"outcome.open": 2}},
		"unknown":  {core.Event{Kind: core.OutcomeUnknown, Idempotent: true}, table{"attempt.unknown" + attempt: 1}},
		"an operator resolves": {
			core.Event{Kind: core.OperatorResolved, Idempotent: true, Change: &core.Change{By: "ada"}},
			table{"operator.changes change=resolved" + attempt: 1},
		},
		"an operator revokes": {core.Event{Kind: core.OperatorRevoked, Change: &core.Change{By: "ada"}}, table{"operator.changes change=revoked" + lock: 1}},
		"an operator perhaps frees a lock": {
			core.Event{Kind: core.OperatorFreed, Change: &core.Change{By: "ada"}, Err: unavailable},
			table{"operator.changes change=freed error.type=unavailable" + lock: 1},
		},
		"unlocked": {core.Event{Kind: core.Unlocked, Err: unavailable}, table{"request.unlocked" + lock: 1}},
		"registered": {
			core.Event{Kind: core.Registered, Idempotent: true},
			table{"lease.losses cause=lost" + attempt: 0, "attempt.unknown" + attempt: 0, "attempt.restorations" + attempt: 0, "outage.active": 0, "outage.starts": 0},
		},
		"outage":    {core.Event{Kind: core.Outage, Server: "s", Err: unavailable}, table{"outage.active": 1, "outage.starts": 1}},
		"recovered": {core.Event{Kind: core.Recovered, Server: "s", Lasted: 1}, table{"outage.active": -1}},
		"warned":    {core.Event{Kind: core.Warned, Err: errors.New("secret")}, table{}},
		"closing":   {core.Event{Kind: core.Closing, Holds: 3}, table{}},
		"of later":  {core.Event{Kind: 99}, table{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			instruments, reader := newInstruments(t)
			test.event.Name = map[string]string{"": "account", unnamed: ""}[test.event.Name]
			instruments.Observe(test.event)
			if differences := valuesOf(t, reader).differences(test.want); differences != "" {
				t.Error(differences)
			}
		})
	}
}

// A route is not known before its first request, so its counters begin with 0 then.
func TestCountersOfARouteBeginWithItsFirstRequest(t *testing.T) {
	t.Parallel()
	instruments, reader := newInstruments(t)
	instruments.Observe(core.Event{Kind: core.Acquired, Grant: core.GrantFree, Idempotent: true, Name: "/payments"})
	values, found := valuesOf(t, reader), 0
	for series, value := range values {
		if strings.Contains(series, "lock.name=/payments") && value == 0 {
			found++
		}
	}
	if found != 3 {
		t.Errorf("%d counters are 0, want those of losses, unknown outcomes and restorations: %v", found, values)
	}
}

// released returns the event of the release of an attempt.
func released(ending core.Ending, err error) core.Event {
	return core.Event{Kind: core.Released, Ending: ending, Idempotent: true, Err: err}
}

// Each code of a refusal has its own series, and the error.type of a server's error only if
// its HTTP status is one.
func TestEachOutcomeIsRecorded(t *testing.T) {
	t.Parallel()
	failures := map[string]bool{"overloaded": true, "upgrade": true, "hidden_lease": true, "closing": true, "unavailable": true}
	for _, kind := range []error{
		core.ErrBusy, core.ErrWaitTimeout, core.ErrQueueFull, core.ErrOverloaded, core.ErrNoKey, core.ErrInvalidKey,
		core.ErrBodyTooLarge, core.ErrMismatch, core.ErrOutcomeUnknown, core.ErrUnreplayable, core.ErrUpgrade, core.ErrHiddenLease,
		core.ErrClosed, core.ErrUnavailable,
	} {
		instruments, reader := newInstruments(t)
		err := fmt.Errorf("wrapped: %w", &core.Error{Kind: kind})
		instruments.Observe(core.Event{Kind: core.Refused, Err: err, Waited: time.Second})
		refusal, _ := core.RefusalOf(err)
		failure := ""
		if failures[refusal.Code] {
			failure = " error.type=" + refusal.Code
		}
		want := table{"acquire.duration" + failure + " operation=lock outcome=" + refusal.Code: 1}
		if differences := valuesOf(t, reader).differences(want); differences != "" {
			t.Error(differences)
		}
	}
}

// A program that makes names from requests, against the docs, gets a bounded number of series.
func TestNamesAreBounded(t *testing.T) {
	t.Parallel()
	instruments, reader := newInstruments(t)
	const names, more = 512, 88
	var group sync.WaitGroup
	for i := range names + more {
		group.Go(func() {
			name := fmt.Sprint("name", i)
			instruments.Observe(core.Event{Kind: core.Waiting, Name: name})
			instruments.Observe(core.Event{Kind: core.Waiting, Name: name, Idempotent: true})
		})
	}
	group.Wait()
	values := valuesOf(t, reader)
	var total int64
	for _, value := range values {
		total += value
	}
	if len(values) != 2*(names+1) || total != 2*(names+more) {
		t.Errorf("%d series with %d events", len(values), total)
	}
	for _, operation := range []string{"lock", "attempt"} {
		if got := values.of("request.waiting lock.name=_other operation=" + operation); got != more {
			t.Errorf("%d events of operation %s have other names", got, operation)
		}
	}
}

// Several Lockers may share an Instrumentation, and each may have series that the others do not
// have.
func TestObserveIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	instruments, reader := newInstruments(t, otellock.WithSpans(otellock.All))
	const goroutines, rounds = 8, 50
	var group sync.WaitGroup
	for range goroutines {
		group.Go(func() {
			for i := range rounds {
				for _, event := range everyEvent() {
					event.Name = fmt.Sprint("name", i%5)
					instruments.Observe(event)
				}
			}
		})
	}
	group.Wait()
	var total int64
	for series, value := range valuesOf(t, reader) {
		if strings.HasPrefix(series, "lease.grants ") {
			total += value
		}
		if strings.HasPrefix(series, "request.waiting ") && value != 0 {
			t.Errorf("%s is %d", series, value)
		}
	}
	if total != goroutines*rounds {
		t.Errorf("%d grants", total)
	}
}
