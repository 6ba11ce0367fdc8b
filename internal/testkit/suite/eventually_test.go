package suite

import (
	"testing"
	"testing/synctest"
	"time"
)

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
