package suite

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestEventuallyReturnsOnceTheConditionHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		Eventually(t, "three calls", func() bool { calls++; return calls == 3 })
		if calls != 3 {
			t.Errorf("%d calls", calls)
		}
	})
}

func TestEveryChecksOnceInEachPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls, begun := 0, time.Now()
		Eventually(t, "three calls", Every(time.Second, func() bool { calls++; return calls == 3 }))
		// Eventually itself looks up to a longPause later.
		if took := time.Since(begun); calls != 3 || took < 2*time.Second || took > 2*(time.Second+longPause) {
			t.Errorf("%d calls in %v", calls, took)
		}
	})
}

// failing is a testing.TB whose Fatalf panics.
type failing struct {
	testing.TB
	text string
}

func (f *failing) Helper()                      {}
func (f *failing) Fatalf(text string, _ ...any) { f.text = text; panic(f) }
func (f *failing) Errorf(text string, _ ...any) { f.text = text }

func TestEventuallyFailsAfterAMinute(t *testing.T) {
	synctest.Test(t, func(*testing.T) {
		f, begun := &failing{}, time.Now()
		defer func() {
			if recover() != f || time.Since(begun) < patience {
				t.Errorf("ended after %v with %q", time.Since(begun), f.text)
			}
		}()
		Eventually(f, "nothing", func() bool { return false })
	})
}

func TestAwaitClosedReturnsOnceTheChannelIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		channel, begun := make(chan struct{}), time.Now()
		time.AfterFunc(time.Second, func() { close(channel) })
		if IsClosed(channel) {
			t.Error("it is closed from the start")
		}
		AwaitClosed(t, "closed", channel)
		if !IsClosed(channel) || time.Since(begun) != time.Second {
			t.Errorf("returned after %v", time.Since(begun))
		}
	})
}

func TestAwaitClosedFailsAfterAMinute(t *testing.T) {
	synctest.Test(t, func(*testing.T) {
		f, begun := &failing{}, time.Now()
		defer func() {
			if recover() != f || time.Since(begun) != patience {
				t.Errorf("ended after %v with %q", time.Since(begun), f.text)
			}
		}()
		AwaitClosed(f, "nothing", make(chan struct{}))
	})
}

func TestReceiveAnywhereReturnsAndReportsAnErrorAfterTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, values := &failing{}, make(chan int, 1)
		values <- 7
		if got := ReceiveAnywhere(f, "a value", values); got != 7 || f.text != "" {
			t.Errorf("received %d, and failed with %q", got, f.text)
		}
		begun := time.Now()
		if got := ReceiveAnywhere(f, "nothing", values); got != 0 || f.text == "" || time.Since(begun) != PatienceOfHandlers {
			t.Errorf("received %d after %v, and failed with %q", got, time.Since(begun), f.text)
		}
	})
}

func TestEventuallyAnywhereReturnsAndReportsAnErrorAfterTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, begun := &failing{}, time.Now()
		EventuallyAnywhere(f, "a second passes", func() bool { return time.Since(begun) >= time.Second })
		if took := time.Since(begun); took > time.Second+longPause || f.text != "" {
			t.Errorf("returned after %v, and failed with %q", took, f.text)
		}
		begun = time.Now()
		EventuallyAnywhere(f, "nothing", func() bool { return false })
		if took := time.Since(begun); took < PatienceOfHandlers || took > PatienceOfHandlers+longPause || f.text == "" {
			t.Errorf("returned after %v, and failed with %q", took, f.text)
		}
	})
}
