package oteltest

import (
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/otellock"
)

// scenarios are what can happen to the locks of a program.
type scenarios struct {
	*testing.T
	server *redistest.Server
	locks  *core.Locker
	isLong atomic.Bool // a lease was held for three times its TTL
}

// newScenarios returns the scenarios of a program on a server of its own.
func newScenarios(t *testing.T, meters *metric.MeterProvider) *scenarios {
	t.Helper()
	instruments, err := otellock.New(otellock.WithMeterProvider(meters))
	if err != nil {
		t.Fatal(err)
	}
	s := &scenarios{T: t, server: redistest.Start(t)}
	rdb := s.server.Client(t)
	timeout := core.WithCommandTimeout(500 * time.Millisecond)
	s.locks = newLocker(t, rdb, timeout, core.WithTTL(2*time.Second), core.WithName("account"), core.WithObserver(instruments.Observe),
		core.WithObserver(func(e core.Event) {
			if e.Kind == core.HeldLong {
				s.isLong.Store(true)
			}
		}))
	if err := instruments.Watch(s.locks); err != nil {
		t.Fatal(err)
	}
	return s
}

// runAll makes each instrument report.
func (s *scenarios) runAll() {
	s.runLocks()
	s.runLosses()
	s.runAttempts()
}

// lock takes a key, or ends the test.
func (s *scenarios) lock(locks *core.Locker, key string) *core.Lease {
	s.Helper()
	lease, err := locks.Lock(s.Context(), key)
	if err != nil {
		s.Fatal(err)
	}
	return lease
}

// runLocks grants, passes and refuses locks.
func (s *scenarios) runLocks() {
	first := s.lock(s.locks, "k")
	if _, err := s.locks.TryLock(s.Context(), "k"); err == nil {
		s.Error("the key was locked twice")
	}
	waited := make(chan struct{})
	go func() {
		defer close(waited)
		if second, err := s.locks.With(core.WithWait(time.Minute)).Lock(s.Context(), "k"); err == nil {
			_ = second.Release(s.Context())
		}
	}()
	if _, err := s.locks.With(core.WithWait(50*time.Millisecond)).Lock(s.Context(), "k"); err == nil {
		s.Error("the key was locked twice")
	}
	_ = first.Release(s.Context())
	suite.AwaitClosed(s, "the second caller returns", waited)
}

// runLosses loses a lease, ends one by its maximum, and holds one for several TTLs.
func (s *scenarios) runLosses() {
	long := s.lock(s.locks, "long")
	defer func() { _ = long.Release(s.Context()) }()
	lost := s.lock(s.locks, "lost")
	redistest.Lose(s, s.server.Client(s.T), "the lease is lost", func() bool { return lost.Context().Err() != nil }, "reqlock:lost")
	_ = lost.Release(s.Context())
	ended := s.lock(s.locks.With(core.WithMaxHold(20*time.Millisecond)), "max")
	suite.AwaitClosed(s, "the lease ends", ended.Context().Done())
	_ = ended.Release(s.Context())
	suite.Eventually(s, "a lease is held for three TTLs", func() bool {
		if long.Context().Err() != nil { // a busy machine has renewed it too late
			_ = long.Release(s.Context())
			long = s.lock(s.locks, "long")
		}
		return s.isLong.Load()
	})
}

// runAttempts ends attempts in each way, and loses the record of one.
func (s *scenarios) runAttempts() {
	for key, end := range map[string]func(*core.Attempt) error{
		"commit":    func(a *core.Attempt) error { return a.Commit(s.Context(), []byte("answer")) },
		"seal":      func(a *core.Attempt) error { return a.Seal(s.Context()) },
		"abort":     func(a *core.Attempt) error { return a.Abort(s.Context()) },
		"interrupt": func(a *core.Attempt) error { return a.Interrupt(s.Context()) },
		"restore": func(a *core.Attempt) error {
			s.server.Client(s.T).FlushAll(s.Context())
			return a.Commit(s.Context(), []byte("answer"))
		},
	} {
		attempt, err := s.locks.Begin(s.Context(), key, []byte("payload"))
		if err != nil {
			s.Fatalf("%s: %v", key, err)
		}
		if err := end(attempt); err != nil {
			s.Errorf("%s: %v", key, err)
		}
	}
}
