package engine

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// A key that is free again is granted at once, although the process handed it to another one just before, and no
// server has confirmed yet that the process listens.
func TestFreeKeyAfterAHandOffNeedsNoSubscription(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(2)
		h := hold(t, p.engines[0], request(0))
		waiting(t, p.engines[1], request(WaitForever), func(*Hold) {})
		release(t, h)
		synctest.Wait() // the other process has released the key
		p.stores[0].connecting = 200 * time.Millisecond
		begun := time.Now()
		got, err := p.engines[0].Acquire(t.Context(), request(50*time.Millisecond))
		if err != nil {
			t.Errorf("after %v: %v", time.Since(begun), err)
		} else {
			release(t, got)
		}
		time.Sleep(time.Minute)
		p.checkIdle(t)
	})
}

// The token of a caller that joins with its first command joins once, and leaves the store's queue with the caller.
func TestTokenThatJoinsFirst(t *testing.T) {
	for name, test := range map[string]struct {
		wait time.Duration
		want []string
	}{
		"gets the key": {WaitForever, []string{"enqueue apart fresh", "enqueue apart", "release apart"}},
		"gives up":     {500 * time.Millisecond, []string{"enqueue apart fresh", "release"}},
	} {
		row(t, name, func(t *testing.T) {
			p := newProcesses(2)
			h := hold(t, p.engines[0], request(0))
			waiting(t, p.engines[1], request(WaitForever), func(*Hold) { time.Sleep(700 * time.Millisecond) })
			release(t, h)
			var sent sendLog
			p.stores[0].before.set(sent.add)
			p.stores[0].inline = true
			if got, err := p.engines[0].Acquire(t.Context(), request(test.wait)); err == nil {
				release(t, got)
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			if got := sent.all(); !slices.Equal(got, test.want) {
				t.Errorf("sent %q, want %q", got, test.want)
			}
			p.checkIdle(t)
		})
	}
}
