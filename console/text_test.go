package console

import (
	"fmt"
	"testing"
	"time"
)

func TestTimesAreWrittenForPeople(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-1: "–", 0: "0 ms", 999 * time.Millisecond: "999 ms", 59*time.Second + 999*time.Millisecond: "59 s",
		time.Minute: "1 min 0 s", 10 * time.Minute: "10 min", 61 * time.Minute: "1 h 1 min", 49 * time.Hour: "2 d 1 h",
	} {
		if got := lasted(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
	if now := time.Now().UTC(); clock(now) != now.Format("15:04:05 UTC") && now.Add(-time.Minute).Day() == time.Now().UTC().Day() {
		t.Error(clock(now))
	}
	if got := clock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)); got != "2026-01-02 03:04 UTC" {
		t.Error(got)
	}
	if got := fmt.Sprint(count(0, "lock", "locks"), ", ", count(1, "lock", "locks"), ", ", short("abc")); got != "0 locks, 1 lock, abc" {
		t.Error(got)
	}
}
