package engine

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// A process that has just handed the key to another one joins the store's queue with its first
// command, and takes the key first in any other case.
func TestNextTurnAfterAHandOffTakesNothing(t *testing.T) {
	for name, test := range map[string]struct {
		pause, wait time.Duration
		want        string
	}{
		"at once":         {0, WaitForever, "enqueue"},
		"soon":            {contendedFor, WaitForever, "enqueue"},
		"later":           {contendedFor + 1, WaitForever, "take"},
		"may not wait":    {0, 0, "take"},
		"a short wait":    {0, time.Millisecond, "enqueue"},
		"nothing to hand": {-1, WaitForever, "take"},
	} {
		row(t, name, func(t *testing.T) {
			p := newProcesses(2)
			h := hold(t, p.engines[0], request(0))
			if test.pause >= 0 {
				waiting(t, p.engines[1], request(WaitForever), func(*Hold) {})
			}
			release(t, h)
			synctest.Wait()
			time.Sleep(test.pause)
			before := len(p.stores[0].transitions())
			release(t, hold(t, p.engines[0], request(test.wait)))
			if got := p.stores[0].transitions()[before:]; !slices.Equal(got, []string{test.want, "release"}) {
				t.Errorf("transitions %v, want a %s and a release", got, test.want)
			}
			before = len(p.stores[0].transitions())
			release(t, hold(t, p.engines[0], request(WaitForever)))
			if got := p.stores[0].transitions()[before:]; !slices.Equal(got, []string{"take", "release"}) {
				t.Errorf("after a turn without a hand-off: transitions %v", got)
			}
			p.checkIdle(t)
		})
	}
}

func TestHandedOffKeysAreFew(t *testing.T) {
	s := new(shard)
	for i := range 3 * maxContended {
		s.noteContended(string(rune(i)), true)
		if len(s.contended) > maxContended {
			t.Fatalf("%d keys", len(s.contended))
		}
	}
}
