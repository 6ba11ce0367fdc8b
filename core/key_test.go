package core_test

import (
	"context"
	"crypto/fips140"
	"errors"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/core"
)

func TestKeys(t *testing.T) {
	t.Parallel()
	a, b := field("a"), field("b")
	tests := []struct {
		name    string
		key     core.KeyFunc[form]
		request form
		want    string
		err     error
	}{
		{"of", core.Of(func(f form) string { return f["a"] }), form{"a": "x"}, "x", nil},
		{"join", core.Join(a, b), form{"a": "x", "b": "yz"}, "1:x2:yz", nil},
		{"join counts bytes", core.Join(a), form{"a": "é"}, "2:é", nil},
		{"join, empty part", core.Join(a, b), form{"a": "x"}, "", core.ErrNoKey},
		{"join, skipped part", core.Join(a, b), form{"a": "x", "b": "!skip"}, "", core.ErrSkip},
		{"join, bad part", core.Join(a, b), form{"a": "!bad", "b": "x"}, "", core.ErrInvalidKey},
		{"first of two", core.First(a, b), form{"a": "x", "b": "y"}, "x", nil},
		{"second of two", core.First(a, b), form{"b": "y"}, "y", nil},
		{"first, none", core.First(a, b), form{}, "", core.ErrNoKey},
		{"first does not ignore a bad key", core.First(a, b), form{"a": "!bad", "b": "y"}, "", core.ErrInvalidKey},
		{"first does not ignore a skip", core.First(a, b), form{"a": "!skip", "b": "y"}, "", core.ErrSkip},
		{"when it holds", core.When(func(f form) bool { return f["b"] != "" }, a), form{"a": "x", "b": "y"}, "x", nil},
		{"when it does not", core.When(func(f form) bool { return f["b"] != "" }, a), form{"a": "x"}, "", core.ErrSkip},
		{"when it holds without a key", core.When(func(form) bool { return true }, a), form{}, "", core.ErrNoKey},
		{"named", core.Named("account", a), form{"a": "42"}, "account:42", nil},
		{"named, no key", core.Named("account", a), form{}, "", core.ErrNoKey},
		{"named, skip", core.Named("account", a), form{"a": "!skip"}, "", core.ErrSkip},
		{"hashed", core.Hashed(a), form{"a": "abc"}, "ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0", nil},
		{"hashed, no key", core.Hashed(a), form{}, "", core.ErrNoKey},
		{"hashed, skip", core.Hashed(a), form{"a": "!skip"}, "", core.ErrSkip},
		{"keyed", core.Keyed([]byte("key"), a), form{"a": "The quick brown fox jumps over the lazy dog"}, "97yD9DBThCSxMpjmqm-xQ-9NWaFJRhdZl0edvC0aPNg", nil},
		{"keyed, no key", core.Keyed([]byte("key"), a), form{}, "", core.ErrNoKey},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			key, err := test.key(test.request)
			if got := key.Raw(); got != test.want || !errors.Is(err, test.err) {
				t.Errorf("got %q, %v; want %q, %v", got, err, test.want, test.err)
			}
		})
	}
}

func TestKeysPanicAtRegistration(t *testing.T) {
	t.Parallel()
	var none core.KeyFunc[form]
	for name, register := range map[string]func(){
		"join of nothing":       func() { core.Join([]core.KeyFunc[form]{}...) },
		"join of nil":           func() { core.Join(field("a"), none) },
		"func of nil":           func() { core.Func(none) },
		"first of nothing":      func() { core.First([]core.KeyFunc[form]{}...) },
		"when without a key":    func() { core.When(func(form) bool { return true }, none) },
		"when without a test":   func() { core.When(nil, field("a")) },
		"of nil":                func() { core.Of[form](nil) },
		"no name":               func() { core.Named("", field("a")) },
		"a name with a colon":   func() { core.Named("a:b", field("a")) },
		"a name like a length":  func() { core.Named("1", field("a")) },
		"hashed nil":            func() { core.Hashed(none) },
		"keyed without secret":  func() { core.Keyed(nil, field("a")) },
		"keyed nil":             func() { core.Keyed([]byte("s"), none) },
		"observer without slog": func() { core.SlogObserver(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			if text := panicOf(register); !strings.HasPrefix(text, "reqlock: ") {
				t.Errorf("panic %q", text)
			}
		})
	}
}

// Step "fips" of .ci/run runs this test under GODEBUG=fips140=only. There crypto/hmac panics with
// a short secret, which would fail each request.
func TestShortSecretIsRefusedInFIPSMode(t *testing.T) {
	t.Parallel()
	for length, refused := range map[int]bool{13: fips140.Enforced(), 14: false} {
		text := panicOf(func() { noError(t, errorOf(core.Keyed(make([]byte, length), field("a"))(form{"a": "1"}))) })
		if strings.HasPrefix(text, "reqlock: ") != refused || (text == "") == refused {
			t.Errorf("%d bytes: panic %q", length, text)
		}
	}
}

func TestNamesOfKeys(t *testing.T) {
	t.Parallel()
	for name, allowed := range map[string]bool{
		"a": true, "z": true, "A": true, "Z": true, "a0": true, "a9": true, "x1y": true, "-": true, "_": true, ".": true, "/": true,
		"": false, "0": false, "9": false, "0a": false, "i": false, "a:": false, // ':' follows '9'
		"`": false, "{": false, "@": false, "[": false, "a b": false, "\u00e4": false,
	} {
		t.Run(name, func(t *testing.T) {
			text := panicOf(func() {
				if key, err := core.Named(name, field("a"))(form{"a": "1"}); key.Raw() != name+":1" || key.Name() != name || err != nil {
					t.Errorf("got %q, %q, %v", key.Raw(), key.Name(), err)
				}
			})
			if (text == "") != allowed {
				t.Errorf("panic %q, allowed: %v", text, allowed)
			}
		})
	}
}

func FuzzKeysAreUnique(f *testing.F) {
	f.Add("a:", "b", "a", ":b")
	f.Add("1:a", "", "1", "a1:")
	f.Add("", "", "", "")
	f.Add("account", "1:a1:b", "account", "1:a1:b")
	f.Fuzz(func(t *testing.T, a1, b1, a2, b2 string) {
		one, two := form{"a": a1, "b": b1}, form{"a": a2, "b": b2}
		for name, key := range map[string]core.KeyFunc[form]{
			"join":            core.Join(field("a"), field("b")),
			"join of one":     core.Join(field("a")),
			"join of three":   core.Join(field("a"), field("b"), field("a")),
			"join of a join":  core.Join(core.Join(field("a")), field("b")),
			"join of a named": core.Join(core.Named("n", field("a")), field("b")),
			"named join":      core.Named("n", core.Join(field("a"), field("b"))),
		} {
			k1, err1 := key(one)
			k2, err2 := key(two)
			if err1 != nil || err2 != nil {
				continue
			}
			same := a1 == a2 && (b1 == b2 || name == "join of one")
			if (k1.Raw() == k2.Raw()) != same {
				t.Errorf("%s: %q and %q make %q and %q", name, one, two, k1.Raw(), k2.Raw())
			}
		}
		join, err1 := core.Join(field("a"), field("b"))(one)
		named, err2 := core.Named("n", field("a"))(two)
		if err1 == nil && err2 == nil && join.Raw() == named.Raw() {
			t.Errorf("join and named both make %q", join.Raw())
		}
		n1, err1 := core.Named("n", field("a"))(one)
		n2, err2 := core.Named("n.m", field("a"))(two)
		if err1 == nil && err2 == nil && n1.Raw() == n2.Raw() {
			t.Errorf("two names both make %q", n1.Raw())
		}
	})
}

// pendingError is the error of a key function that is called again.
type pendingError struct{}

func (pendingError) Error() string   { return "not yet" }
func (pendingError) ReqlockPending() {}

func TestPendingKeyIsNoRefusal(t *testing.T) {
	t.Parallel()
	locks, events := observed(t, newEmbedded(t))
	_, _, err := core.Enter(context.Background(), locks, "", core.Named("a", func(string) (string, error) { return "", pendingError{} }))
	var pending pendingError
	if !errors.As(err, &pending) || len(events.all()) != 0 {
		t.Errorf("%v, events %+v", err, events.all())
	}
}
