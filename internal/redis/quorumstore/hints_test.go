package quorumstore

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// received has the hints that a Store has delivered.
type received struct {
	mu    sync.Mutex
	hints []string
}

func (h *received) add(key, token string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hints = append(h.hints, key+" "+token)
}

func (h *received) all() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.hints)
}

// A hint is delivered when a majority has sent it, or hintDelay after the first server.
func TestHintIsDeliveredOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		servers []int
		at      int // after how many servers the hint is delivered; 0 is after hintDelay
		total   int // hints in the end
	}{
		"all servers":                  {[]int{0, 1, 2, 3, 4}, 3, 1},
		"three servers":                {[]int{4, 2, 0}, 3, 1},
		"two servers":                  {[]int{4, 2}, 0, 1},
		"one server":                   {[]int{1}, 0, 1},
		"all servers, twice":           {[]int{0, 1, 2, 3, 4, 0, 1, 2, 3, 4}, 3, 2},
		"two servers, again":           {[]int{0, 1, 2, 0, 1}, 3, 2},
		"again before the last server": {[]int{0, 1, 2, 3, 0, 4, 1}, 3, 2},
	} {
		bubble(t, name, func(t *testing.T) {
			s, fakes := newStore(5)
			var hints received
			s.OnHint(hints.add)
			for n, i := range c.servers {
				fakes[i].hint("k", "t")
				if early := len(hints.all()) > 0; early != (c.at > 0 && n+1 >= c.at) {
					t.Errorf("after %d servers delivered: %v", n+1, early)
				}
			}
			if err := s.Close(t.Context()); err != nil { // it waits until all hints are delivered
				t.Error(err)
			}
			delivered := hints.all()
			if len(delivered) != c.total || slices.ContainsFunc(delivered, func(hint string) bool { return hint != "k t" }) {
				t.Errorf("delivered %q", delivered)
			}
		})
	}
}

// Late grants are not merged like hints: each late vote is reported.
func TestLateVoteIsReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, fakes := newStore(3)
		var late received
		s.OnHint(func(key, token string) { t.Errorf("hint %q %q", key, token) })
		s.OnLateGrant(late.add)
		for range 2 {
			fakes[1].late("k", "ballot")
		}
		if got := late.all(); len(got) != 2 {
			t.Errorf("reported %q, want the ballot twice", got)
		}
	})
}

// A hint of one key or token does not count for another.
func TestHintsOfSeveralKeysDoNotMix(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, fakes := newStore(3)
		var hints received
		s.OnHint(hints.add)
		fakes[0].hint("k", "t")
		fakes[1].hint("k", "u")
		fakes[2].hint("l", "t")
		if delivered := hints.all(); len(delivered) != 0 {
			t.Errorf("delivered %q", delivered)
		}
		err := s.Close(t.Context())
		if delivered := hints.all(); err != nil || len(delivered) != 3 {
			t.Errorf("delivered %q (%v)", delivered, err)
		}
	})
}

func TestListenIsReadyOnceMajorityConfirms(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, fakes := newStore(5)
		close(fakes[4].ready) // the process is subscribed there already
		ready, stop := s.Listen("k")
		for i, f := range fakes[:2] {
			select {
			case <-ready:
				t.Errorf("ready with %d servers", i+1)
			default:
			}
			close(f.ready)
			synctest.Wait()
		}
		<-ready
		stop()
		stop()
		for i, f := range fakes {
			if f.stopped != 1 {
				t.Errorf("server %d was stopped %d times", i, f.stopped)
			}
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A hint that comes again later is delivered again, even if only one server sends it.
func TestLaterHintIsDelivered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, fakes := newStore(3)
		var hints received
		s.OnHint(hints.add)
		for i := range 3 {
			fakes[i].hint("k", "t")
			time.Sleep(hintDelay)
			synctest.Wait()
			if delivered := hints.all(); len(delivered) != i+1 {
				t.Errorf("delivered %q", delivered)
			}
		}
	})
}
