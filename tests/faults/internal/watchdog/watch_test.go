package watchdog

import (
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

func TestOnlyALongGapIsAStall(t *testing.T) {
	const patience = 100 * time.Millisecond
	longest := (interval + patience).Nanoseconds()
	if isStall(5, 5+longest, patience) {
		t.Error("it was no longer than the patience")
	}
	if !isStall(5, 6+longest, patience) {
		t.Error("it was longer than the patience")
	}
}

func TestWatchReportsStallsUntilItEnds(t *testing.T) {
	reported := make(chan bool)
	// With this tolerance each interval is a stall.
	stop := Watch(-interval, func(from, to int64) {
		select {
		case reported <- from < to:
		case <-t.Context().Done():
		}
	})
	for range 3 {
		select {
		case isOne := <-reported:
			if !isOne {
				t.Error("a stall ends before it begins")
			}
		case <-time.After(10 * time.Second):
			t.Fatal("it tells of nothing")
		}
	}
	go func() { // a report may be under way
		for range reported {
			continue
		}
	}()
	stop()
	stop()
	close(reported)
}
