package main

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A screen is an output that a test reads while it is written.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

// String returns what was written.
func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// watching is watch, which a test drives.
type watching struct {
	out    *screen
	ticks  chan time.Time
	cancel context.CancelFunc
	ended  chan result
}

// watch begins to watch.
func (o operator) watch(t *testing.T, args ...string) *watching {
	t.Helper()
	w := &watching{out: &screen{}, ticks: make(chan time.Time), ended: make(chan result, 1)}
	o.out, o.ticks = w.out, w.ticks
	ctx, cancel := context.WithCancel(t.Context())
	w.cancel = cancel
	t.Cleanup(cancel)
	go func() { w.ended <- o.runUntil(ctx, append([]string{"watch"}, args...)...) }()
	return w
}

// tick makes watch print another list. It returns when watch waits for the next one before that.
func (w *watching) tick(t *testing.T) {
	t.Helper()
	select {
	case w.ticks <- time.Now():
	case r := <-w.ended:
		t.Fatalf("watch has ended: status %d: %s", r.status, r.problems)
	}
}

func TestWatchRepeatsTheListUntilAnInterrupt(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		isTerminal bool
		env        map[string]string
		redraws    bool
	}{
		"a file":          {},
		"a terminal":      {isTerminal: true, redraws: true},
		"NO_COLOR":        {isTerminal: true, env: map[string]string{"NO_COLOR": "1"}},
		"a dumb terminal": {isTerminal: true, env: map[string]string{"TERM": "dumb"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, rdb, o := start(t)
			o.isTerminal, o.env = test.isTerminal, test.env
			locks := newLocker(t, rdb)
			w := o.watch(t, "--every", "1h", "--match", "*")
			if test.redraws {
				suite.Eventually(t, "the empty list", func() bool { return w.out.String() == clear+"reqlock: no locks\n" })
			} else {
				w.tick(t)
			}
			must(locks.Lock(t.Context(), "first"))(t)
			w.tick(t)
			suite.Eventually(t, "the first lock", func() bool { return strings.Contains(w.out.String(), "first") })
			must(locks.Lock(t.Context(), "second"))(t)
			w.tick(t)
			suite.Eventually(t, "the second lock", func() bool { return strings.Contains(w.out.String(), "second") })
			w.cancel()
			r := suite.Receive(t, "watch ends", w.ended)
			text := w.out.String()
			if r.status != exitOK || strings.Contains(r.problems, "reqlock: no locks\n") == test.redraws {
				t.Errorf("status %d: %s", r.status, r.problems)
			}
			if test.redraws && strings.Count(text, clear) != 3 || !test.redraws && (strings.Contains(text, "\x1b") || !strings.Contains(text, "\n\nKEY")) {
				t.Errorf("%q", text)
			}
		})
	}
}

// Redis may be away for a while. At the beginning it may not.
func TestWatchOutlivesAnOutage(t *testing.T) {
	t.Parallel()
	server, rdb, o := start(t)
	must(newLocker(t, rdb).Lock(t.Context(), "k"))(t)
	w := o.watch(t, "--json")
	suite.Eventually(t, "the first list", func() bool { return strings.Contains(w.out.String(), `"key":"k"`) })
	server.Kill()
	w.tick(t)
	w.tick(t) // the list without Redis is over
	w.cancel()
	if r := suite.Receive(t, "watch ends", w.ended); r.status != exitOK || !strings.Contains(r.problems, "redis unavailable") {
		t.Errorf("status %d: %s", r.status, r.problems)
	}
	o.run(t, "watch").want(t, exitError, "reqlock: watch: redis unavailable")
	o.run(t, "watch", "--every", "1ms").want(t, exitUsage)
}
