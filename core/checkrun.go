package core

import (
	"context"
	"slices"
	"sync"
)

// checks are the Checks of a Locker and all its views. Checks at once share one run.
type checks struct {
	advised sync.Once // guards what Check says only once

	mu     sync.Mutex
	told   map[string]bool // the warnings of the last run without an error
	run    *checkRun       // the run under way; nil if there is none, or if no caller waits for it
	closed bool
}

// A checkRun is one run of a check. It has a context of its own, which ends when the last of its
// callers has left, or with the Locker.
type checkRun struct {
	cancel  context.CancelFunc
	callers int           // that wait for it; checks.mu guards it
	done    chan struct{} // closed when the run has the following results

	warnings []error   // that were not told yet
	tell     sync.Once // by one of the callers
	err      error
}

// joinCheck adds a caller to the run that is under way, or to a new one. It returns nil if the
// Locker is closed.
func (l *Locker) joinCheck() *checkRun {
	c := l.checks
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	if c.run == nil {
		c.run = l.startCheck()
	}
	if c.run != nil {
		c.run.callers++
	}
	return c.run
}

// startCheck starts a run. It returns nil if the engine is closed.
func (l *Locker) startCheck() *checkRun {
	ctx, cancel := context.WithCancel(context.Background())
	run := &checkRun{cancel: cancel, done: make(chan struct{})}
	check := l.backend.newCheck(&l.settings)
	runs := l.engine.Go(func() {
		defer check.Close()
		defer cancel()
		run.warnings, run.err = check.Run(ctx)
		l.checks.end(run)
	})
	if !runs {
		cancel()
		return nil
	}
	return run
}

// end delivers the results of a run to its callers. A warning that the run before had, too, was told.
func (c *checks) end(run *checkRun) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(run)
	if run.err == nil {
		found := make(map[string]bool)
		for _, warning := range run.warnings {
			found[warning.Error()] = true
		}
		run.warnings = slices.DeleteFunc(run.warnings, func(warning error) bool { return c.told[warning.Error()] })
		c.told = found
	}
	close(run.done)
}

// leave removes a caller from a run. It ends the run, and returns true, if the caller was the last.
func (c *checks) leave(run *checkRun) (last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	run.callers--
	if run.callers > 0 {
		return false
	}
	c.drop(run)
	run.cancel()
	return true
}

// drop makes the next caller start another run. The caller holds c.mu.
func (c *checks) drop(run *checkRun) {
	if c.run == run {
		c.run = nil
	}
}

// close ends the run, and refuses further callers.
func (c *checks) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.run != nil {
		c.run.cancel()
	}
}
