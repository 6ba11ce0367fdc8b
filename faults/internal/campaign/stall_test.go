package campaign

import (
	"testing"
	"time"
)

func TestOnlyALongTimeWithoutATickIsAStall(t *testing.T) {
	const patience = 100 * time.Millisecond
	longest := (stallStep + patience).Nanoseconds()
	if seen := stalled(nil, 5, 5+longest, patience); len(seen) != 0 {
		t.Errorf("got %+v", seen)
	}
	seen := stalled(nil, 5, 6+longest, patience)
	if len(seen) != 1 || seen[0].From != 5 || seen[0].To != 6+longest || seen[0].Loss {
		t.Errorf("got %+v", seen)
	}
}

func TestAWatchEnds(t *testing.T) {
	w := watchStalls(time.Hour)
	if seen := w.stop(); len(seen) != 0 {
		t.Errorf("got %+v", seen)
	}
}
