package annotated

import (
	"errors"
	"slices"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/bridge"
)

// CheckSource returns the mistake of a key that a rule names as a source. isWhole says that it is
// the whole key of a lock.
func CheckSource[R any](key core.Key[R], isWhole bool) error {
	switch about := bridge.AboutOf(key); {
	case len(about.Limits) > 0 && !isWhole:
		return errors.New("the source has Permits or Shared, which only the whole key of a lock may have")
	case about.Several:
		return errors.New("the source is several keys of core.All: declare several locks")
	}
	return nil
}

// CheckLocker returns an error if a Locker for declared locks has options that the rules say.
func CheckLocker(l *core.Locker) error {
	if bridge.FactsOf(l).SharesLocks {
		return errors.New("WithPermits and WithShared: write permits or shared in the rules instead")
	}
	return nil
}

// CheckIdempotent returns an error if the options of an interceptor for idempotent methods have one
// that the rules say.
func CheckIdempotent(opts []core.Option) error {
	if slices.ContainsFunc(opts, func(opt core.Option) bool { return bridge.NameOf(opt) == "WithOptionalKey" }) {
		return errors.New("WithOptionalKey: write optional in the rules instead")
	}
	return nil
}
