// Package bridge lets the adapters reach what package core does not export. core sets the functions
// in its init. Values of core have the type any here, because core imports this package.
package bridge

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

// Settings are the options of a core.Locker that only the adapters use. A zero field is not set.
type Settings struct {
	Methods         []string // in upper case
	OptionalKey     []string
	MaxBody         int64
	Stored          func(status int) bool
	Unknown         any  // a func(core.Failure) bool
	FreeOnFailure   bool // Unknown is the function of WithFreeOnFailure
	ReplayedHeaders []string
	Fingerprint     any  // a func(R) ([]byte, error)
	NoFingerprint   bool // WithoutFingerprint
	Own             map[OwnOption]any
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
	// CheckOptions is adapter.CheckOptions.
	CheckOptions func(l, opts any) error
	// CheckName is adapter.CheckName.
	CheckName func(name string) error
	// Warn is adapter.Warn.
	Warn func(l, subject any, err error)
)
