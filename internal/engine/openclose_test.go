package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// Close gives open commits the time of its context, and 2 s if that has no deadline.
func TestCloseEndsOpenCommits(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		timeout, back time.Duration
		took          time.Duration // -1 if it depends on a random pause
		done, timely  bool
		isPermanent   bool // the fault
	}{
		"no deadline":                          {0, time.Hour, commitTimeout, false, true, false},
		"no deadline, and redis comes back":    {0, commitTimeout / 2, -1, true, true, false},
		"a deadline":                           {time.Minute, time.Hour, time.Minute, false, false, false},
		"a deadline, and redis comes back":     {time.Minute, 50 * time.Second, -1, true, true, false},
		"a deadline, and the client is closed": {time.Minute, time.Hour, 0, false, true, true},
		"a deadline that is before the resend": {time.Millisecond, 5 * time.Second, time.Millisecond, false, false, false},
	} {
		row(t, name, func(t *testing.T) {
			p := newProcesses(1)
			back := openCommitOf(t, p, hold(t, p.engines[0], attempt("f", 0)), EndCommit)
			if test.isPermanent {
				p.stores[0].before.set(func(string, storetest.AnyRequest) error { return &store.Fault{Err: errors.New("closed")} })
			}
			ctx, cancel := context.WithCancel(context.Background())
			if test.timeout > 0 {
				ctx, cancel = context.WithTimeout(ctx, test.timeout)
			}
			defer cancel()
			time.AfterFunc(test.back, back)
			begun := time.Now()
			err := p.engines[0].Close(ctx)
			if took := time.Since(begun); test.took >= 0 && took != test.took || took > test.back+maxOpenPause {
				t.Errorf("took %v", took)
			}
			if (err == nil) != test.timely || err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("close: %v", err)
			}
			if late := lateResult(t, p.events[0]); (late.Err == nil) != test.done {
				t.Errorf("late: %+v", late)
			}
			if n, bytes, age := p.engines[0].OpenCommits(); n != 0 || bytes != 0 || age != 0 || p.engines[0].open.bytes.Load() != 0 {
				t.Errorf("%d open commits with %d bytes, %v old", n, bytes, age)
			}
			back()
			time.Sleep(time.Hour) // nothing is sent any more
			if got := p.server.record("k").state; (got == 'D') != test.done {
				t.Errorf("the record is %c", got)
			}
		})
	}
}

// The server refuses the commits of many keys, each after some time, so that one is always under
// way. Close ends nevertheless, and at its return each commit has its event.
func TestCloseEndsWhileOpenCommitsAreSent(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		timeout, took time.Duration
	}{
		"no deadline": {0, commitTimeout + bound},
		"a deadline":  {time.Second, time.Second},
	} {
		row(t, name, func(t *testing.T) {
			const keys = 100
			p := newProcesses(1)
			p.engines[0].open.maxCount, p.engines[0].open.maxBytes = keys, 100*keys
			var holds []*Hold
			for i := range keys {
				r := attempt("f", 0)
				r.Key = fmt.Sprint("k", i)
				holds = append(holds, hold(t, p.engines[0], r))
			}
			p.stores[0].before.set(func(string, storetest.AnyRequest) error {
				time.Sleep(bound)
				return errNoCommitReply
			})
			var ended sync.WaitGroup
			for _, h := range holds {
				ended.Go(func() {
					if _, err := h.End(context.Background(), EndCommit, answerOf(h)); err == nil {
						t.Error("the commit was accepted")
					}
				})
			}
			ended.Wait()
			time.Sleep(3 * time.Second)
			ctx, cancel := context.WithTimeout(context.Background(), cmp.Or(test.timeout, time.Hour))
			defer cancel()
			if test.timeout == 0 {
				ctx = context.Background()
			}
			begun := time.Now()
			err := p.engines[0].Close(ctx)
			if took := time.Since(begun); took > test.took || (err == nil) != (test.timeout == 0) {
				t.Errorf("took %v: %v", took, err)
			}
			late := 0
			for _, e := range p.events[0].of(Committed) {
				if e.Repeated {
					late++
				}
			}
			if unknown := len(p.events[0].of(OutcomeUnknown)); late != keys || unknown != 2*keys {
				t.Errorf("%d late results, %d unknown outcomes", late, unknown)
			}
			time.Sleep(time.Minute)
		})
	}
}

// A holder that Close has given up commits later. That commit does not go on.
func TestNoCommitGoesOnAfterClose(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(1)
		h := hold(t, p.engines[0], attempt("f", 0))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := p.engines[0].Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("close: %v", err)
		}
		p.stores[0].before.set(fails(errNoCommitReply))
		if _, err := h.End(t.Context(), EndCommit, answerOf(h)); err == nil {
			t.Error("the commit was accepted")
		}
		synctest.Wait()
		open := &p.engines[0].open
		if unknown := p.events[0].of(OutcomeUnknown); len(unknown) != 1 || unknown[0].GoesOn || open.count.Load() != 0 || open.bytes.Load() != 0 {
			t.Errorf("%+v; %d open commits with %d bytes", unknown, open.count.Load(), open.bytes.Load())
		}
		closes(t, p.engines[0])
	})
}

// There is room for so many open commits, and for so many bytes.
func TestBoundsOfOpenCommits(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		maxCount, maxBytes int64
		want               int
	}{
		"count":                            {2, 1000, 2},
		"bytes":                            {10, 50, 2},
		"a record over the bound of bytes": {10, 19, 0},
		"off":                              {0, 1000, 0},
	} {
		row(t, name, func(t *testing.T) {
			p := newProcesses(1)
			p.engines[0].open.maxCount, p.engines[0].open.maxBytes = test.maxCount, test.maxBytes
			var holds []*Hold
			for _, key := range []string{"a", "b", "c"} {
				r := attempt("f", 0)
				r.Key = key
				holds = append(holds, hold(t, p.engines[0], r))
			}
			p.stores[0].before.set(fails(errNoCommitReply))
			for _, h := range holds {
				if _, err := h.End(t.Context(), EndCommit, answerOf(h)); err == nil { // 1 + 4 + 14 + 1 bytes
					t.Error("the commit was accepted")
				}
			}
			time.Sleep(3 * time.Second)
			n, bytes, oldest := p.engines[0].OpenCommits()
			if n != test.want || bytes != int64(20*n) || (oldest > 2*commitTimeout) != (n > 0) {
				t.Errorf("%d open commits with %d bytes, the oldest %v old", n, bytes, oldest)
			}
			for i, e := range p.events[0].of(OutcomeUnknown) {
				if e.GoesOn != (i < test.want) {
					t.Errorf("outcome %d: %+v", i, e)
				}
			}
			p.stores[0].before.set(nil)
			time.Sleep(time.Minute)
			if n, left, size := len(p.events[0].of(Committed)), p.engines[0].open.count.Load(), p.engines[0].open.bytes.Load(); n != 3+test.want || left != 0 || size != 0 {
				t.Errorf("%d events; left: %d open commits with %d bytes", n, left, size)
			}
			p.checkIdle(t)
		})
	}
}

// A commit that is over the bound of bytes does not take the room of another one, not even while it
// is refused.
func TestRefusedCommitTakesNoRoom(t *testing.T) {
	t.Parallel()
	o := openCommits{maxCount: 1, maxBytes: 100}
	stop := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				o.add(1000)
			}
		}
	})
	refused := 0
	for range 100_000 {
		if !o.add(100) {
			refused++
			continue
		}
		o.remove(100)
	}
	close(stop)
	group.Wait()
	if refused > 0 || o.count.Load() != 0 || o.bytes.Load() != 0 {
		t.Errorf("no room %d times; %d commits with %d bytes are left", refused, o.count.Load(), o.bytes.Load())
	}
}
