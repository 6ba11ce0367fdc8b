package core

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/reqlock/reqlock/internal/bridge"
)

// Packages adapter and inspect call these functions: see package bridge.
func init() { //nolint:gochecknoinits // see package bridge
	bridge.NewOption = func(own bridge.OwnOption, on bridge.Middleware, set func(any) any) any {
		return scopedOption{option: setOwn(own, set), name: own.Option, adapter: own.Adapter, on: on}
	}
	bridge.NameOf = func(opt any) string {
		scoped, _ := opt.(scopedOption)
		return scoped.name
	}
	bridge.View = func(l any, adapter, middleware string, kind bridge.Middleware, opts any) (any, error) {
		return l.(*Locker).viewFor(adapter, middleware, kind, opts.([]Option))
	}
	bridge.SettingsOf = func(l any) *bridge.Settings { return &l.(*Locker).settings.requests }
	bridge.FactsOf = func(l any) bridge.Facts {
		locks := l.(*Locker)
		return bridge.Facts{
			MaxWait: locks.waitOr(0), FailsOpen: locks.settings.failOpen,
			KeepsRecords: locks.backend.keepsRecords(), SharesLocks: locks.settings.limit.IsShared(),
		}
	}
	bridge.Decision = func(a any) int32 { return int32(a.(*Attempt).decided()) }
	bridge.MaxAnswer = func(a any) int { return a.(*Attempt).locker.settings.maxAnswer }
	bridge.NameOutcome = func(a any, name string) { a.(*Attempt).nameOutcome(name) }
	bridge.IsNested = func(a any) bool { return a.(*Attempt).outer != nil }
	bridge.CommitOwned = func(ctx context.Context, a any, answer []byte) error { return a.(*Attempt).commitOwned(ctx, answer) }
	bridge.CutOff = func(a any, cause error, aborted bool) error { return a.(*Attempt).cutOff(cause, aborted) }
	bridge.InContext = inContext
	bridge.TypeOf = typeOf
	bridge.CheckOptions = func(l, opts any) error { return l.(*Locker).checkOptions(opts.([]Option)) }
	bridge.UnwrapContext = func(unwrap func(context.Context) (context.Context, bool)) {
		requestContexts = append(requestContexts, unwrap)
	}
	bridge.CheckName = checkName
	bridge.NoteCaller = func(l any) any {
		view := *l.(*Locker)
		view.noteCaller()
		return &view
	}
	bridge.NewChange = func(ctx context.Context, c bridge.Change) any { return newChange(ctx, c) }
	bridge.Warn = func(l, subject any, err error) { l.(*Locker).warn(subject, err) }
	bridge.WarnForeign = func(l any) { l.(*Locker).warnForeign() }
}

// viewFor is With for a middleware of an adapter, with an error instead of a panic.
func (l *Locker) viewFor(adapter, middleware string, kind bridge.Middleware, opts []Option) (*Locker, error) {
	for _, opt := range opts {
		scoped, _ := opt.(scopedOption)
		switch {
		case opt == nil:
			return nil, fmt.Errorf("reqlock: %s: an option is nil", adapter)
		case scoped.adapter != "" && scoped.adapter != adapter:
			return nil, fmt.Errorf("reqlock: %s: %s.%s is an option of another adapter: write options of %[1]s and core",
				adapter, scoped.adapter, scoped.name)
		case scoped.name != "" && scoped.on&kind == 0:
			return nil, scoped.withoutEffect(adapter, middleware, kind)
		}
	}
	view, err := l.view(opts)
	if err == nil {
		view.noteCaller()
	}
	return view, err
}

// noteCaller sets the code that made the view, unless an adapter around this one has set it.
func (l *Locker) noteCaller() {
	if l.settings.caller && l.settings.madeBy == "" {
		l.settings.madeBy = callerOf(true)
	}
}

// withoutEffect returns the error of an option that has no effect on a middleware.
func (o scopedOption) withoutEffect(adapter, middleware string, kind bridge.Middleware) error {
	const ofHTTP = 2 // an RPC kind is that many bits above its HTTP kind
	if o.instead != "" && o.on&(kind>>ofHTTP) != 0 {
		return fmt.Errorf("reqlock: %s: core.%s has no effect on %s: %s", adapter, o.name, middleware, strings.ReplaceAll(o.instead, "%s", adapter))
	}
	return fmt.Errorf("reqlock: %s: %s has no effect on %s: leave it out", adapter, o.name, middleware)
}

// checkOptions returns the error with which With panics, or that of New if l is nil.
func (l *Locker) checkOptions(opts []Option) error {
	if l != nil {
		_, err := l.view(opts)
		return err
	}
	s, err := settingsOf("CheckOptions", opts)
	if err != nil {
		return err
	}
	return s.check()
}

// checkName returns the error with which Named refuses a name, or nil.
func checkName(name string) error {
	switch {
	case name == strings.TrimSuffix(attemptMark, ":"):
		return errors.New("reqlock: Named cannot use the name of idempotent requests")
	case !isName(name):
		return errors.New("reqlock: Named needs a name of letters, digits, '-', '_', '.' and '/' that does not begin with a digit")
	}
	return nil
}

// warn sends a Warned event, once for each subject.
func (l *Locker) warn(subject any, err error) {
	if _, again := l.warned.LoadOrStore(subject, nil); !again {
		l.settings.notify(Event{Kind: Warned, Err: err})
	}
}
