package keytext_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/suite"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/keytext"
)

func TestMain(m *testing.M) { suite.Main(m) }

// check compares a key and its error with the expected ones.
func check(t *testing.T, key string, err error, want string, wantErr error) {
	t.Helper()
	if key != want || !errors.Is(err, wantErr) || (err == nil) != (wantErr == nil) {
		t.Errorf("got %q, %v; want %q, %v", key, err, want, wantErr)
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	longest := strings.Repeat("x", keytext.MaxLen)
	for name, test := range map[string]struct {
		in      string
		wantErr error
	}{
		"plain":           {"42", nil},
		"space":           {"a b", nil},
		"letters":         {"Ærøskøbing", nil},
		"not UTF-8":       {"a\xffb", nil},
		"longest":         {longest, nil},
		"empty":           {"", core.ErrNoKey},
		"too long":        {longest + "x", core.ErrInvalidKey},
		"NUL":             {"a\x00b", core.ErrInvalidKey},
		"line feed":       {"a\nb", core.ErrInvalidKey},
		"carriage return": {"a\r", core.ErrInvalidKey},
		"last of C0":      {"\x1f", core.ErrInvalidKey},
		"DEL":             {"a\x7f", core.ErrInvalidKey},
		"C1":              {"a\u009b31m", core.ErrInvalidKey},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := test.in
			if test.wantErr != nil {
				want = ""
			}
			key, err := keytext.Text(test.in)
			check(t, key, err, want, test.wantErr)
		})
	}
}

func TestOnlyAcceptsExactlyOneText(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		in      []string
		want    string
		wantErr error
	}{
		"one":       {[]string{"a"}, "a", nil},
		"none":      {nil, "", core.ErrNoKey},
		"one empty": {[]string{""}, "", core.ErrNoKey},
		"two":       {[]string{"a", "b"}, "", core.ErrInvalidKey},
		"two equal": {[]string{"a", "a"}, "", core.ErrInvalidKey},
		"malformed": {[]string{"\n"}, "", core.ErrInvalidKey},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key, err := keytext.Only(test.in)
			check(t, key, err, test.want, test.wantErr)
		})
	}
}

type (
	name   string
	number int16
	level  int
	user   struct{ id string }
)

func (l level) String() string { return fmt.Sprintf("level-%d", int(l)) }

func (u *user) String() string { return u.id }

func TestValue(t *testing.T) {
	t.Parallel()
	var noUser *user
	for title, test := range map[string]struct {
		in      any
		want    string
		wantErr error
	}{
		"string":            {"42", "42", nil},
		"named string":      {name("ada"), "ada", nil},
		"int":               {-7, "-7", nil},
		"int64":             {int64(-1 << 63), "-9223372036854775808", nil},
		"uint64":            {uint64(1<<64 - 1), "18446744073709551615", nil},
		"byte":              {byte(200), "200", nil},
		"uintptr":           {uintptr(3), "3", nil},
		"named integer":     {number(12), "12", nil},
		"zero":              {0, "0", nil},
		"Stringer":          {&user{"u1"}, "u1", nil},
		"Stringer by value": {netip.MustParseAddr("::1"), "::1", nil},
		"integer Stringer":  {level(3), "level-3", nil},
		"duration":          {time.Second, "1s", nil},
		"nil":               {nil, "", core.ErrNoKey},
		"empty":             {"", "", core.ErrNoKey},
		"empty Stringer":    {&user{}, "", core.ErrNoKey},
		"nil Stringer":      {noUser, "", core.ErrNoKey},
		"nil slice":         {net.IP(nil), "", core.ErrNoKey},
		"control character": {name("a\n"), "", core.ErrInvalidKey},
		"long Stringer":     {&user{strings.Repeat("x", 513)}, "", core.ErrInvalidKey},
		"bool":              {true, "", core.ErrInvalidKey},
		"float":             {1.0, "", core.ErrInvalidKey},
		"bytes":             {[]byte("42"), "", core.ErrInvalidKey},
		"struct":            {user{"u1"}, "", core.ErrInvalidKey},
		"pointer":           {new(int), "", core.ErrInvalidKey},
		"error":             {errors.New("x"), "", core.ErrInvalidKey},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			key, err := keytext.Value(test.in)
			check(t, key, err, test.want, test.wantErr)
		})
	}
}

func TestAsAcceptsOnlyTheGivenType(t *testing.T) {
	t.Parallel()
	var noUser *user
	for title, test := range map[string]struct {
		in      any
		want    string
		wantErr error
	}{
		"right type":        {&user{"u1"}, "u1", nil},
		"empty":             {&user{}, "", core.ErrNoKey},
		"nil":               {nil, "", core.ErrNoKey},
		"nil pointer":       {noUser, "", core.ErrNoKey},
		"control character": {&user{"a\n"}, "", core.ErrInvalidKey},
		"another type":      {user{"u1"}, "", core.ErrInvalidKey},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			key, err := keytext.As(test.in, func(u *user) string { return u.id })
			check(t, key, err, test.want, test.wantErr)
		})
	}
}

func TestAsConvertsToAnInterface(t *testing.T) {
	t.Parallel()
	key, err := keytext.As(level(1), fmt.Stringer.String)
	check(t, key, err, "level-1", nil)
}

// An error names the wrong type, and contains nothing of the value.
func TestErrorsNameTheType(t *testing.T) {
	t.Parallel()
	_, err := keytext.Value(map[string]string{"secret": "secret"})
	if text := err.Error(); !strings.Contains(text, "map[string]string") || strings.Contains(text, "secret") {
		t.Errorf("Value: %s", text)
	}
	_, err = keytext.As(user{"secret"}, func(u *user) string { return u.id })
	if text := err.Error(); !strings.Contains(text, "keytext_test.user") ||
		!strings.Contains(text, "*keytext_test.user") || strings.Contains(text, "secret") {
		t.Errorf("As: %s", text)
	}
}

// For any input, a key is not empty, has at most MaxLen bytes and contains no control
// character.
func FuzzText(f *testing.F) {
	for _, seed := range []string{"", "42", "a\x00", "\u0085", "\xc2", strings.Repeat("é", 256)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		key, err := keytext.Text(in)
		switch {
		case err == nil && (key != in || key == "" || len(key) > keytext.MaxLen):
			t.Errorf("Text(%q) = %q", in, key)
		case err == nil && strings.ContainsAny(key, "\x00\t\n\r\x1b\x7f\u0080\u009b"):
			t.Errorf("Text(%q) lets a control character pass", in)
		case err != nil && !errors.Is(err, core.ErrNoKey) && !errors.Is(err, core.ErrInvalidKey):
			t.Errorf("Text(%q): %v", in, err)
		}
	})
}
