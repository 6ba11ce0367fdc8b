package adapter

import (
	"net/http"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/answer"
	"github.com/reqlock/reqlock/internal/bridge"
)

// settings are the options of Idempotent that a Locker has, with their defaults.
type settings[R any] struct {
	methods     []string
	optionalKey []string                // empty if the key is required
	fingerprint func(R) ([]byte, error) // nil: the function fingerprintOf
	maxBody     int64                   // 0: bridge.DefaultMaxBody
	// unknown reports whether a failed handler leaves the outcome unknown. nil means that
	// the outcome is unknown after a panic, after a failure without a status, by the end of a
	// context or with a body that broke off, and after a status of answer.Unknown that stored
	// does not store.
	unknown func(core.Failure) bool
	stored  func(status int) bool
	custom  bool // unknown or stored was set
	filter  answer.Filter
}

// settingsOf returns the settings of a Locker. The error names the option.
func settingsOf[R any](n Name, l *core.Locker) (settings[R], error) {
	set := bridge.SettingsOf(l)
	for _, name := range set.ReplayedHeaders {
		if answer.NeverReplayed(name) {
			return settings[R]{}, n.Errorf("WithReplayedHeaders: the header %q is never replayed", name)
		}
	}
	fingerprint, err := ownFingerprint[R](n, l)
	if err != nil {
		return settings[R]{}, err
	}
	s := settings[R]{
		methods:     set.Methods,
		optionalKey: set.OptionalKey,
		fingerprint: fingerprint,
		maxBody:     set.MaxBody,
		stored:      set.Stored,
		filter:      answer.Filter{}.Also(set.ReplayedHeaders...),
	}
	s.unknown, _ = set.Unknown.(func(core.Failure) bool)
	s.custom = s.unknown != nil || s.stored != nil
	if s.methods == nil {
		s.methods = defaultMethods()
	}
	if s.stored == nil {
		s.stored = answer.Storable
	}
	return s, nil
}

// defaultMethods returns the methods that are idempotent by key if the application has not
// chosen others.
func defaultMethods() []string { return []string{http.MethodPost, http.MethodPatch} }
