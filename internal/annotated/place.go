package annotated

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// A place is where a declaration stands: a file, a service or method in it, and a rule. It
// collects the mistakes.
type place struct {
	faults *[]error
	text   string
}

// placeOf returns the place of a service or a method.
func placeOf(faults *[]error, d protoreflect.Descriptor) place {
	return place{faults, fmt.Sprintf("%s: %s", printable(d.ParentFile().Path()), d.FullName())}
}

// printable returns a path, quoted if it has a character that a terminal would interpret.
func printable(path string) string {
	if quoted := strconv.Quote(path); quoted != `"`+path+`"` {
		return quoted
	}
	return path
}

// in returns a place inside this one.
func (p place) in(format string, args ...any) place {
	return place{p.faults, p.text + ": " + fmt.Sprintf(format, args...)}
}

// fault adds a mistake.
func (p place) fault(err error) {
	*p.faults = append(*p.faults, fmt.Errorf("reqlock: %s: %w", p.text, err))
}

// faultf is fault with a text.
func (p place) faultf(format string, args ...any) { p.fault(fmt.Errorf(format, args...)) }

// check adds a mistake that core has found, if there is one. The text is that of core without its
// prefix.
func (p place) check(prefix string, err error) {
	if err != nil {
		p.fault(errors.New(strings.TrimPrefix(err.Error(), "reqlock: "+prefix)))
	}
}
