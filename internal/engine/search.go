package engine

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"strings"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// searchKey is the key of the lock of the process that searches. No event is about it.
const searchKey = "reqlock-unknown-search"

// searchWidth is how many outcomes a search reads at a time.
const searchWidth = 16

// searchTurn is how often at least a process asks whether the one that searches has died.
const searchTurn = 10 * time.Second

// A Searcher is store.Searcher, for the owner of the engine.
type Searcher = store.Searcher

// A Search is how an engine searches for unknown outcomes.
type Search struct {
	// Every is the pause between two searches.
	Every time.Duration
	// TTL is how long another process waits after the death of the one that searches.
	TTL time.Duration
	// Mark begins the keys of attempts. Records of other keys are not those of the owner.
	Mark string
}

// Found is the Err of an OutcomeUnknown of a search.
type Found struct {
	// Attempt and Number are those of an Outcome.
	Attempt string
	Number  int
	// Age is how long ago at least the attempt began, or was renewed for the last time; 0 is
	// unknown.
	Age time.Duration
}

// Error returns a short text. The owner of the engine makes the text for its users.
func (*Found) Error() string { return "a search has found the attempt" }

// StartSearch searches until Close for attempts that died, if no other process does, and reports
// those that nobody has reported. The owner calls it once, after New, and observes.
func (e *Engine) StartSearch(from Searcher, c Search) {
	s := &searcher{Search: c, engine: e, from: from, closing: closingContext{e.closing}}
	e.Go(s.run)
}

// A closingContext ends when Close begins. It is no child of context.Background: otherwise linters
// want the context of the caller of core.New, in each program.
type closingContext struct{ closing <-chan struct{} }

// Deadline returns none.
func (closingContext) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }

// Done is closed when Close begins.
func (c closingContext) Done() <-chan struct{} { return c.closing }

// Value returns nil.
func (closingContext) Value(any) any { return nil }

// Err returns context.Canceled after the begin of Close.
func (c closingContext) Err() error {
	select {
	case <-c.closing:
		return context.Canceled
	default:
		return nil
	}
}

// A searcher searches for unknown outcomes. Only its goroutine uses it.
type searcher struct {
	Search
	engine  *Engine
	from    Searcher
	closing closingContext

	hold   *Hold // of searchKey; nil if this process does not search
	busy   bool  // another process had the lease
	shown  bool  // there was a Searched event since the hold began
	failed bool  // the last search failed, and a Warned event said so

	open map[uint64]struct{} // the hashes of the locks with an unknown outcome, of this search
}

// run searches until Close begins.
func (s *searcher) run() {
	ctx := context.Context(s.closing)
	defer s.showNone()
	defer s.leave()
	for ctx.Err() == nil {
		s.searchOnce(ctx)
		pause := s.Every
		if s.busy {
			pause = min(pause, searchTurn)
		}
		next := time.After(pause)
		if s.hold != nil {
			select {
			case <-next:
				continue
			case <-s.hold.Context().Done(): // also if ctx ends
				s.leave()
			}
		}
		select {
		case <-next:
		case <-ctx.Done():
		}
	}
}

// searchOnce searches once, unless another process does.
func (s *searcher) searchOnce(ctx context.Context) {
	begun := time.Now()
	err := s.enter(ctx)
	if err == nil && s.hold != nil {
		err = s.search(s.hold.Context())
	}
	switch {
	case ctx.Err() != nil:
	case err != nil:
		var refusal *Refusal
		isOutage := store.IsOutage(err) || errors.As(err, &refusal) && store.IsOutage(refusal.Fault) // which is reported
		if !s.failed && !isOutage {
			s.failed = true
			s.engine.onWarning(fmt.Errorf("reqlock: a search for unknown outcomes has failed, and is tried again: %w", err))
		}
		if !s.shown { // another process may be able to search, such as one with more rights
			s.leave()
		}
	case s.hold != nil:
		s.failed, s.shown = false, true
		s.engine.observeLater(queuedEvent{Event: Event{Kind: Searched, Holds: len(s.open), Held: time.Since(begun)}})
	}
}

// enter takes the lease, unless another process has it.
func (s *searcher) enter(ctx context.Context) error {
	s.busy = false
	if s.hold != nil && s.hold.Context().Err() == nil {
		return nil
	}
	s.leave()
	hold, err := s.engine.Acquire(ctx, Request{Key: searchKey, TTL: s.TTL, Renew: true})
	var refusal *Refusal
	switch {
	case err == nil:
		s.hold = hold
	case errors.As(err, &refusal) && refusal.Reason == Busy:
		s.busy = true
		s.showNone()
		return nil
	case errors.As(err, &refusal) && refusal.Reason == ClosedDown:
		return nil
	}
	return err
}

// leave gives up the lease.
func (s *searcher) leave() {
	if s.hold == nil {
		return
	}
	_, _ = s.hold.Release(context.Background())
	s.hold = nil
}

// showNone reports that this process counts no longer, if it did. A lease that an outage has ended is
// no reason: no other process counts then.
func (s *searcher) showNone() {
	if s.shown {
		s.shown = false
		s.engine.observeLater(queuedEvent{Event: Event{Kind: Searched}})
	}
}

// search counts the unknown outcomes, and reports those that nobody has reported.
func (s *searcher) search(ctx context.Context) error {
	s.open = make(map[uint64]struct{})
	return s.from.Search(ctx, s.engine.bound, func(records []store.OpenRecord) error {
		for len(records) > 0 {
			n := min(len(records), searchWidth)
			if err := s.visit(ctx, records[:n]); err != nil {
				return err
			}
			records = records[n:]
		}
		return nil
	})
}

// visit reads the outcomes of some records at the same time.
func (s *searcher) visit(ctx context.Context, records []store.OpenRecord) error {
	type result struct {
		outcome Outcome
		err     error
	}
	results := make([]chan result, len(records))
	for i, record := range records {
		if record.Key != "" && !strings.HasPrefix(record.Key, s.Mark) {
			continue
		}
		results[i] = make(chan result, 1)
		request := store.OutcomeRequest{Lock: record.Lock, Bound: s.engine.bound}
		s.engine.work.Add()
		s.engine.store.Outcome(request, func(outcome store.Outcome, err error) {
			defer s.engine.work.Done()
			results[i] <- result{outcome, err}
		})
	}
	for i, record := range records {
		if results[i] == nil {
			continue
		}
		select {
		case got := <-results[i]:
			if got.err != nil {
				return got.err
			}
			if err := s.count(ctx, record, got.outcome); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// count counts the outcome if it is unknown, and reports it if nobody has.
func (s *searcher) count(ctx context.Context, record store.OpenRecord, outcome Outcome) error {
	hash := maphash.String(s.engine.seed, record.Lock)
	if _, again := s.open[hash]; again || outcome.State != Unknown || s.engine.runsAttempt(record.Key) {
		return nil
	}
	s.open[hash] = struct{}{}
	if record.Reported == outcome.Attempt || s.engine.hasOpen(record.Key) { // the process of an open commit has reported it
		return nil
	}
	found := &Found{Attempt: outcome.Attempt, Number: outcome.Number, Age: record.Idle}
	event := Event{Kind: OutcomeUnknown, Key: record.Key, Attempt: true, Origin: outcome.First, Err: found}
	noted := make(chan struct{})
	note := store.ResolveRequest{Lock: record.Lock, Seen: outcome.Attempt}
	if !s.engine.observeLater(queuedEvent{event, func() { s.engine.note(note, func() { close(noted) }) }}) {
		return nil // there is no room: a later search reports it
	}
	select {
	case <-noted:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
