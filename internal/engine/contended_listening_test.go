package engine

import (
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
