package core

import (
	"context"
	"errors"
	"strings"
	"time"
)

// Warn sends an event of the kind Warned to the observers. An adapter calls Warn if a request
// shows a mistake in the setup of the adapter. err says what is wrong and what to write
// instead, and must contain no key. An adapter warns once of each mistake, not once for each
// request. Warn is safe for concurrent use.
func (l *Locker) Warn(err error) { l.settings.notify(Event{Kind: Warned, Err: err}) }

// ObserveRefused sends an event of the kind Refused to the observers: the key of an idempotent
// request, or its fingerprint, could not be read. ctx is the context of the request. Enter does
// so itself. It is for an adapter of your own that calls BeginKey. It ignores nil and ErrSkip.
func (l *Locker) ObserveRefused(ctx context.Context, err error) {
	l.observeUnread(ctx, err, true)
}

// MaxWait returns how long Enter, Begin and the middlewares wait for a lock that is held: the
// duration of WithWait, or 0 if it is not set. An adapter can compare it with the timeouts of
// its server.
func (l *Locker) MaxWait() time.Duration { return l.waitOr(0) }

// CheckOptions returns the error that New returns for the options, or nil. It is for an adapter
// that reads settings from somewhere else than Go code, and says where the mistake is.
func CheckOptions(opts ...Option) error {
	s, err := settingsOf("CheckOptions", opts)
	if err != nil {
		return err
	}
	return s.check()
}

// CheckOptions returns the error with which With panics for the options, or nil. It is CheckOptions
// for a view of this Locker, whose other settings may exclude an option.
func (l *Locker) CheckOptions(opts ...Option) error {
	_, err := l.view(opts)
	return err
}

// CheckName returns the error with which Named refuses a name, or nil. It is for an adapter that
// reads names from somewhere else than Go code.
func CheckName(name string) error {
	switch {
	case name == strings.TrimSuffix(attemptMark, ":"):
		return errors.New("reqlock: Named cannot use the name of idempotent requests")
	case !isName(name):
		return errors.New("reqlock: Named needs a name of letters, digits, '-', '_', '.' and '/' that does not begin with a digit")
	}
	return nil
}
