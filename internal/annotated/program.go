package annotated

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/bridge"
)

// A Program is what there is beside the declarations.
type Program struct {
	// Sources are the names of the keys in Go.
	Sources []string
	// AnySource accepts the names of all sources: the keys in Go are not known.
	AnySource bool
	// InCode are the full methods that the program locks by its code.
	InCode []string
}

// checkSource refuses the name of a source that the program does not have.
func (p *Program) checkSource(name string) error {
	switch {
	case name == "":
		return errors.New("it has no name")
	case p.AnySource || slices.Contains(p.Sources, name):
		return nil
	case len(p.Sources) == 0:
		return errors.New("there is no such source; none is given")
	}
	known := make([]string, len(p.Sources))
	for i, source := range p.Sources {
		known[i] = strconv.Quote(source)
	}
	return fmt.Errorf("there is no such source; given are %s", strings.Join(known, ", "))
}

// locksInCode reports whether the program locks a method by its code.
func (p *Program) locksInCode(fullMethod string) bool { return slices.Contains(p.InCode, fullMethod) }

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
