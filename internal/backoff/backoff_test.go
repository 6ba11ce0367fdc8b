package backoff

import (
	"math"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

func TestPauseDoublesUpToItsLimit(t *testing.T) {
	t.Parallel()
	const least, most = 5 * time.Millisecond, 250 * time.Millisecond
	for tries, span := range map[int]time.Duration{0: least, 1: 2 * least, 5: 32 * least, 6: most, 7: most, math.MaxInt: most} {
		pauses := make(map[time.Duration]bool)
		for range 100 {
			pause := Pause(tries, least, most)
			if pause < span/2 || pause >= span {
				t.Fatalf("after %d tries the pause is %v, not between half of %v and all of it", tries, pause, span)
			}
			pauses[pause] = true
		}
		if len(pauses) < 50 {
			t.Errorf("after %d tries only %d of 100 pauses differ", tries, len(pauses))
		}
	}
}
