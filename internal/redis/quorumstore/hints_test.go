package quorumstore

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

// heard is the hints that were told.
type heard struct {
	mu    sync.Mutex
	hints []string
}

func (h *heard) hear(key, token string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hints = append(h.hints, key+" "+token)
}

func (h *heard) all() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.hints)
}

// A hint is told when a majority has given it, or a moment after the first.
func TestAHintIsToldOnce(t *testing.T) {
	for name, c := range map[string]struct {
		servers []int
		at      int // once how many have given it; 0 is later
		later   int // hints after all
	}{
		"all give it":                {[]int{0, 1, 2, 3, 4}, 3, 1},
		"three do":                   {[]int{4, 2, 0}, 3, 1},
		"two do":                     {[]int{4, 2}, 0, 1},
		"one does":                   {[]int{1}, 0, 1},
		"all give it twice":          {[]int{0, 1, 2, 3, 4, 0, 1, 2, 3, 4}, 3, 2},
		"once more by two":           {[]int{0, 1, 2, 0, 1}, 3, 2},
		"before the last has, again": {[]int{0, 1, 2, 3, 0, 4, 1}, 3, 2},
	} {
		bubble(t, name, func(t *testing.T) {
			s, fakes := newStore(5)
			var hints heard
			s.OnHint(hints.hear)
			for n, i := range c.servers {
				fakes[i].hint("k", "t")
				if early := len(hints.all()) > 0; early != (c.at > 0 && n+1 >= c.at) {
					t.Errorf("after %d servers told: %v", n+1, early)
				}
			}
			if err := s.Close(t.Context()); err != nil { // which waits for what was not told
				t.Error(err)
			}
			told := hints.all()
			if len(told) != c.later || slices.ContainsFunc(told, func(hint string) bool { return hint != "k t" }) {
				t.Errorf("told %q", told)
			}
		})
	}
}

// What is said of one key or token is not said of another.
// A late vote is reported by itself: it is no message, of which several servers send the
// same.
func TestLateVoteIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, fakes := newStore(3)
		var late heard
		s.OnHint(func(key, token string) { t.Errorf("hint %q %q", key, token) })
		s.OnLateGrant(late.hear)
		for range 2 {
			fakes[1].late("k", "ballot")
		}
		if got := late.all(); len(got) != 2 {
			t.Errorf("reported %q, want the ballot twice", got)
		}
	})
}

func TestHintsOfSeveralKeysDoNotMix(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, fakes := newStore(3)
		var hints heard
		s.OnHint(hints.hear)
		fakes[0].hint("k", "t")
		fakes[1].hint("k", "u")
		fakes[2].hint("l", "t")
		if told := hints.all(); len(told) != 0 {
			t.Errorf("told %q", told)
		}
		err := s.Close(t.Context())
		if told := hints.all(); err != nil || len(told) != 3 {
			t.Errorf("told %q (%v)", told, err)
		}
	})
}

// A process is known to listen once a majority says so.
func TestListeningIsReadyOnAMajority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, fakes := newStore(5)
		close(fakes[4].ready) // it listens there already
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
