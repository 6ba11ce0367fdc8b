package store

import (
	"strings"
	"testing"
)

func TestReferenceIsShortAndPrintable(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01": true,
		"a !\"#'<>~":            true,
		strings.Repeat("a", 64): true,
		strings.Repeat("a", 65): false,
		"":                      false,
		"a\nb":                  false,
		"a\x00":                 false,
		"a\x1b[2J":              false,
		"a\x7f":                 false,
		"\u202e":                false,
		"\xff":                  false,
	} {
		if got := IsReference(text); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}
