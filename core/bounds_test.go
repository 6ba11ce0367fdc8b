package core_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestBoundsOfDurations(t *testing.T) {
	t.Parallel()
	rdb := newEmbedded(t)
	const (
		year = 365 * 24 * time.Hour
		most = time.Duration(math.MaxInt64)
	)
	for setting, set := range map[string]struct {
		option      func(time.Duration) core.Option
		least, most time.Duration
	}{
		"WithTTL":            {core.WithTTL, 100 * time.Millisecond, 10 * year},
		"WithWait":           {core.WithWait, 0, most},
		"WithMaxHold":        {core.WithMaxHold, time.Millisecond, most},
		"WithRetryAfter":     {core.WithRetryAfter, time.Millisecond, 24 * time.Hour},
		"WithRetention":      {core.WithRetention, time.Second, most},
		"WithCommandTimeout": {core.WithCommandTimeout, time.Millisecond, 10 * year},
	} {
		for _, d := range []time.Duration{set.least, set.most} {
			if _, err := core.New(rdb, set.option(d)); err != nil {
				t.Errorf("%s(%v) is refused: %v", setting, d, err)
			}
		}
		for d, bound := range map[time.Duration]time.Duration{set.least - 1: set.least, set.most + 1: set.most} {
			if setting == "WithMaxHold" && d > 0 || setting == "WithWait" {
				bound = max(bound, time.Millisecond)
			}
			if d == math.MinInt64 { // most+1 has overflowed: no duration is above this bound
				continue
			}
			_, err := core.New(rdb, set.option(d))
			if err == nil || !strings.HasPrefix(err.Error(), "reqlock: "+setting+": ") {
				t.Errorf("%s(%v): %v", setting, d, err)
			} else if d > 0 && !strings.Contains(err.Error(), bound.String()) {
				t.Errorf("%v does not name the bound %v", err, bound)
			}
		}
	}
}

func TestLocksWithTheLongestDurations(t *testing.T) {
	t.Parallel()
	const most = time.Duration(math.MaxInt64)
	const decade = 10 * 365 * 24 * time.Hour
	for name, options := range map[string][]core.Option{
		"TTL":             {core.WithTTL(decade)},
		"wait":            {core.WithWait(most)},
		"longest hold":    {core.WithMaxHold(most)},
		"retention":       {core.WithRetention(most)},
		"command timeout": {core.WithTTL(decade), core.WithCommandTimeout(decade)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rdb := redistest.Reuse(t).Client(t)
			events := &recorder{}
			locks := newLocker(t, rdb, append(options, core.WithObserver(events.record))...)
			lease := lock(t, locks, "k")
			for _, ttl := range []time.Duration{time.Second, most} {
				if err := lease.Extend(t.Context(), ttl); err != nil {
					t.Errorf("extend by %v: %v", ttl, err)
				}
			}
			waiter := make(chan error, 1)
			go func() { waiter <- locks.Do(t.Context(), "k", func(context.Context) error { return nil }) }()
			suite.Eventually(t, "the second caller waits", func() bool { return len(events.of(core.Waiting)) == 1 })
			noError(t, lease.Context().Err())
			release(t, lease)
			noError(t, suite.Receive(t, "the second caller returns", waiter))
			noError(t, begin(t, locks, "k").Commit(t.Context(), []byte("answer")))
			wantReplay(t, locks, "k", "answer")
			if long := events.of(core.HeldLong); len(long) != 0 {
				t.Errorf("held long: %+v", long)
			}
		})
	}
}
