package otellock_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/otellock"
)

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
