package core

import (
	"errors"
	"time"

	"github.com/reqlock/reqlock/internal/engine"
)

const (
	// minSearchPause is the shortest pause that lets a server with many keys rest.
	minSearchPause = time.Second
	// maxSearchPause is the default retention: a record that expires before a search is not found.
	maxSearchPause = defaultRetention
)

// WithUnknownSearch searches Redis for unknown outcomes of idempotent requests, and pauses for this
// time between two searches: off if not set, at least 1 s, at most 24 h. Without it, the outcome of
// an attempt whose process died is reported when a copy of its request comes, and never if none
// comes. A minute is a good pause. Choose one far below WithRetention, because a record that has
// expired is not found.
//
// Of all processes with the option and the same Redis and prefix, one searches. It holds the lock
// "reqlock-unknown-search": do not use that key. The first search begins with New, which starts a
// goroutine for this option, and the last one ends with Close. If the process dies, another one, or
// the same one after its restart, begins within 20 s. A process whose first search fails leaves it to
// another one.
//
// The observer receives an OutcomeUnknown for each unknown outcome that no process has reported, in
// any process and before any restart: see Event.Age. It receives it again if it was too slow for
// the event, or if the process died meanwhile. After each search, it receives a Searched event with
// the number of the unknown outcomes. If a search fails, it receives a Warned event, and the next
// search tries again; there is no other such event before a search succeeds. The log of WithLogger has
// the first and the last of these. So the option needs it, or WithObserver.
//
// A search sends SCAN to the server, or to each master of a cluster, and reads the state of each
// record. It pauses after each command as long as the command took. The user of Redis needs the
// right +scan, which shows it the names of all keys, and for Event.Age +object|idletime. Check finds
// out whether it has the first. A wrapper that hides the client of a cluster makes a search look at
// a part of the keys.
//
// Only New accepts this option.
func WithUnknownSearch(pause time.Duration) Option {
	return rootOption{"WithUnknownSearch", "New", func(r *root) error {
		r.unknownSearch = pause
		return within("WithUnknownSearch", pause, minSearchPause, maxSearchPause)
	}}
}

// checkUnknownSearch refuses a search that reports to nobody.
func (s *settings) checkUnknownSearch() error {
	if s.unknownSearch > 0 && s.silent && len(s.observers) == 0 {
		return errors.New("reqlock: WithUnknownSearch: there is no logger and no observer to report to: add WithObserver")
	}
	return nil
}

// startUnknownSearch starts the search of the option, if it is on.
func (s *settings) startUnknownSearch(e *engine.Engine, from engine.Searcher) {
	if s.unknownSearch > 0 {
		e.StartSearch(from, engine.Search{Every: s.unknownSearch, TTL: min(s.ttl, defaultTTL), Mark: attemptMark})
	}
}
