package otellock_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/otellock"
)

// Clients choose keys, and names are few. Whatever the keys are, there is no series of their own,
// and no attribute has a text of them.
func TestKeysOfClientsAddNoSeries(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	work := func(i int) {
		secret := "secret" + strconv.Itoa(i)
		key := core.Named("account", core.Func(func(string) (string, error) { return secret, nil }))
		_, release, err := core.Enter(context.Background(), f.locks, "", key)
		if err != nil {
			f.Errorf("enter: %v", err)
			return
		}
		if _, err := f.locks.TryLock(context.Background(), "account:"+secret); err == nil {
			f.Error("the key is not locked")
		}
		release()
	}
	work(0)
	before := valuesOf(t, f.reader)
	const clients, keys = 8, 2000
	var group sync.WaitGroup
	for client := range clients {
		group.Go(func() {
			for i := client + 1; i <= keys; i += clients {
				work(i)
			}
		})
	}
	group.Wait()
	after := valuesOf(t, f.reader)
	if len(after) != len(before) {
		t.Errorf("%d series became %d: %v", len(before), len(after), after)
	}
	if n := after.of("lease.grants handover=free lock.name=account operation=lock"); n != keys+1 {
		t.Errorf("%d grants: %v", n, after)
	}
	for series := range after {
		if strings.Contains(series, "secret") {
			t.Errorf("has a key: %s", series)
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
			instruments.Observe(core.Event{Kind: core.Waiting, Name: name, Attempt: true})
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
