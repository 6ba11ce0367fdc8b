package keytext_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/keytext"
)

// The parts make the key that the key of a middleware reads.
func TestKeyOfParts(t *testing.T) {
	t.Parallel()
	value := func(text string) core.Key[struct{}] { return core.Getter(func(struct{}) string { return text }) }
	for name, test := range map[string]struct {
		parts []string
		key   core.Key[struct{}]
	}{
		"one":               {[]string{"42"}, value("42")},
		"joined":            {[]string{"ada", "4:2"}, core.Join(value("ada"), value("4:2"))},
		"quoted":            {[]string{`"8e03"`}, value("8e03")},
		"quoted and joined": {[]string{"ada", `"8e\"03";a=1`}, core.Join(value("ada"), value(`8e"03`))},
		"named":             {[]string{"account:42"}, value("42").Named("account")},
	} {
		want, err := test.key.Read(struct{}{})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := keytext.OfParts(test.parts); got != want.Raw() || err != nil {
			t.Errorf("%s: %q, %v; want %q", name, got, err, want.Raw())
		}
	}
	for name, test := range map[string]struct {
		parts []string
		want  error
	}{
		"an empty part":       {[]string{""}, core.ErrNoKey},
		"an empty part of 2":  {[]string{"ada", ""}, core.ErrNoKey},
		"empty quotes":        {[]string{`""`}, core.ErrNoKey},
		"a quote without end": {[]string{`"8e03`}, core.ErrInvalidKey},
	} {
		got, err := keytext.OfParts(test.parts)
		if !errors.Is(err, test.want) || got != "" {
			t.Fatalf("%s: %q, %v", name, got, err)
		}
		if text := err.Error(); !strings.HasPrefix(text, "part ") || strings.Contains(text, "reqlock") || strings.Contains(text, "func") {
			t.Errorf("%s: the text is %q", name, text)
		}
	}
	if _, err := keytext.OfParts(nil); err == nil {
		t.Error("no part is a key")
	}
}
