package clock

import (
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestAClockTurnsTimesIntoThoseOfNow(t *testing.T) {
	c := New()
	for range 100 {
		before, at, after := Now(), time.Now(), Now()
		if of := c.Of(at); of < before-width.Nanoseconds() || of > after {
			t.Fatalf("between %d and %d it is %d", before, after, of)
		}
	}
	now := time.Now()
	if d := c.Of(now.Add(time.Second)) - c.Of(now); d != time.Second.Nanoseconds() {
		t.Errorf("a second takes %d", d)
	}
}

func TestMain(m *testing.M) { suite.Main(m) }
