package annotated

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
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
