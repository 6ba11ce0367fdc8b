package main

import (
	"context"
	"slices"
	"sync"

	"github.com/reqlock/reqlock/core"
)

// A scene is what a part sees of the service besides its answers: who is
// inside a handler, and who waits for a lock. It can also keep those who come
// in from going out. It is safe for concurrent use.
type scene struct {
	mu      sync.Mutex
	now     view
	gate    chan struct{} // closed: whoever is inside goes on
	changed chan struct{} // closed at the next change
}

// A view is a scene at one moment. It counts from the latest beginning.
type view struct {
	Inside   int      // operations that are inside now
	Most     int      // the most that were inside at once
	Visits   []string // the operations, in the order in which they came in
	Waiting  int      // how often the observer has seen a request wait
	Answered int      // how many requests have their answer
}

// newScene returns a scene with an open gate.
func newScene() *scene {
	open := make(chan struct{})
	close(open)
	return &scene{gate: open, changed: make(chan struct{})}
}

// begin forgets what was counted, and shuts the gate: from now on whoever
// comes in stays inside, until open is called. That may be done twice.
func (s *scene) begin() (open func()) {
	gate := make(chan struct{})
	s.change(func(now *view) {
		*now = view{Inside: now.Inside, Most: now.Inside}
		s.gate = gate
	})
	return sync.OnceFunc(func() { close(gate) })
}

// clearing is the bank's: it stays inside while the gate is shut.
func (s *scene) clearing(ctx context.Context, operation string) error {
	var gate <-chan struct{}
	s.change(func(now *view) {
		now.Inside++
		now.Most = max(now.Most, now.Inside)
		now.Visits = append(now.Visits, operation)
		gate = s.gate
	})
	defer s.change(func(now *view) { now.Inside-- })
	select {
	case <-gate:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// observe is the Locker's observer.
func (s *scene) observe(event core.Event) {
	if event.Kind == core.Waiting {
		s.change(func(now *view) { now.Waiting++ })
	}
}

// answered notes that a request has its answer.
func (s *scene) answered() {
	s.change(func(now *view) { now.Answered++ })
}

// until waits for a moment that fulfils the condition. It returns ctx's error
// if that ends first.
func (s *scene) until(ctx context.Context, condition func(view) bool) error {
	for {
		now, changed := s.look()
		if condition(now) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// view returns the scene of this moment.
func (s *scene) view() view {
	now, _ := s.look()
	return now
}

func (s *scene) look() (now view, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now = s.now
	now.Visits = slices.Clone(now.Visits)
	return now, s.changed
}

func (s *scene) change(how func(now *view)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	how(&s.now)
	close(s.changed)
	s.changed = make(chan struct{})
}
