package engine

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestInterruptReportsItsCause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(1)
		h := hold(t, p.engines[0], attempt("f", 0))
		cause := errors.New("the handler panicked")
		h.SetCause(cause)
		delaysOnce(p.stores[0], "release", time.Second)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			end(t, h, Interrupt)
		}()
		synctest.Wait()
		h.SetCause(errors.New("too late"))
		<-ended
		if got := p.unknown(); len(got) != 1 || !errors.Is(got[0].Err, cause) {
			t.Errorf("events %+v", got)
		}
		p.checkIdle(t)
	})
}
