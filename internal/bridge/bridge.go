// Package bridge lets packages adapter and inspect reach what package core does not export. core sets the functions
// in its init. Values of core have the type any here, because core imports this package.
package bridge

import (
	"context"
	"time"
)

// A Middleware is a kind of middleware, or a set of kinds.
type Middleware uint8

// The kinds.
const (
	HTTPLock Middleware = 1 << iota
	HTTPIdempotent
	RPCLock
	RPCIdempotent

	Locks       = HTTPLock | RPCLock
	Idempotents = HTTPIdempotent | RPCIdempotent
	All         = Locks | Idempotents
)

// Settings are the options of a core.Locker that only package adapter uses. A zero field is not set.
type Settings struct {
	Methods         []string // in upper case
	Key             string   // how the program writes the key of the middleware; "" without one, or if it is idempotent
	OptionalKey     []string
	MaxBody         int64
	BusyStatus      int    // 0: that of core.RefusalOf
	ProblemType     string // the beginning of the type; "": about:blank
	Stored          func(status int) bool
	Unknown         any  // a func(core.Failure) bool
	FreeOnFailure   bool // Unknown is the function of WithFreeOnFailure
	ReplayedHeaders []string
	Fingerprint     any  // a func(R) ([]byte, error)
	NoFingerprint   bool // WithoutFingerprint
	FirstShown      bool // a refusal has the reference of the first request
	Own             map[OwnOption]any
}

// Facts are what an adapter has to know of a core.Locker beside its options.
type Facts struct {
	MaxWait      time.Duration // how long Enter and Begin wait: 0 without core.WithWait
	FailsOpen    bool          // core.WithFailOpen
	KeepsRecords bool          // it is no quorum
	SharesLocks  bool          // core.WithPermits or core.WithShared
}

// A Change is what the event of a change by an operator says: see core.Change.
type Change struct {
	Kind          int    // a core.EventKind
	Key           string // "": Redis has only its digest
	Shared        bool
	Before, After string
	Err           error
}

// An OwnOption names an option of an adapter.
type OwnOption struct{ Adapter, Option string }

var (
	// NewAnswer returns the core.Answer with these bytes, in the format of an adapter. The format
	// is that of package internal/answer, which core does not know.
	NewAnswer func(encoded []byte) any
	// NewOption returns a core.Option that has an effect on these middlewares of an adapter. It
	// changes a value of Settings.Own by set, which gets nil if there is none.
	NewOption func(own OwnOption, on Middleware, set func(old any) any) any
	// NameOf returns the name of a core.Option, as "WithRetention". It is "" if the option has an
	// effect on each middleware.
	NameOf func(option any) string
	// View returns l.With(opts...) for a middleware of an adapter. The error is that of a nil
	// option, of an option of another adapter, without effect on the middleware, or invalid.
	View func(l any, adapter, middleware string, kind Middleware, opts any) (any, error)
	// SettingsOf returns the Settings of a *core.Locker. The caller must not change them.
	SettingsOf func(l any) *Settings
	// FactsOf returns the Facts of a *core.Locker.
	FactsOf func(l any) Facts
	// Decision returns the core.Ending that the handler of a *core.Attempt has decided.
	Decision func(attempt any) int32
	// MaxAnswer returns the size in bytes of the largest answer that a *core.Attempt stores.
	MaxAnswer func(attempt any) int
	// NameOutcome sets the name of an OutcomeUnknown, and of what ends it, for a *core.Attempt without a
	// name. It does nothing after the end of the attempt.
	NameOutcome func(attempt any, name string)
	// IsNested reports whether a *core.Attempt is nested in another one.
	IsNested func(attempt any) bool
	// CommitOwned is Commit of a *core.Attempt without a copy of the answer, whose bytes the caller
	// must not change any more.
	CommitOwned func(ctx context.Context, attempt any, answer []byte) error
	// CutOff returns the refusal, a *core.Error, for the client of a handler that has given no
	// answer because its context had ended, with that cause. It is what a copy gets.
	CutOff func(attempt any, cause error, aborted bool) error
	// InContext returns an error for the refusal of a request that runs in ctx. If err is of no
	// Locker, it gets the settings of the one whose lease ctx has.
	InContext func(ctx context.Context, err error) error
	// TypeOf returns the type of a problem document with the code for err, or "" for about:blank.
	TypeOf func(err error, code string) string
	// CheckOptions is adapter.CheckOptions.
	CheckOptions func(l, opts any) error
	// UnwrapContext is adapter.UnwrapContext.
	UnwrapContext func(unwrap func(ctx context.Context) (request context.Context, ok bool))
	// NoteCaller is adapter.NoteCaller.
	NoteCaller func(l any) any
	// CheckName is adapter.CheckName.
	CheckName func(name string) error
	// Warn is adapter.Warn.
	Warn func(l, subject any, err error)
	// NewChange returns the core.Event of a change that an operator makes under ctx: see core.AsOperator.
	NewChange func(ctx context.Context, c Change) any
	// WarnForeign warns, once, that a request was answered with the code "internal".
	WarnForeign func(l any)
)
