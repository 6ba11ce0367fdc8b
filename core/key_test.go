package core_test

import (
	"crypto/fips140"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
)

func TestKeys(t *testing.T) {
	t.Parallel()
	a, b := field("a"), field("b")
	tests := []struct {
		name    string
		key     core.Key[form]
		request form
		want    string
		err     error
	}{
		{"getter", core.Getter(func(f form) string { return f["a"] }), form{"a": "x"}, "x", nil},
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
		{"when it holds", a.When(func(f form) bool { return f["b"] != "" }), form{"a": "x", "b": "y"}, "x", nil},
		{"when it does not", a.When(func(f form) bool { return f["b"] != "" }), form{"a": "x"}, "", core.ErrSkip},
		{"when it holds without a key", a.When(func(form) bool { return true }), form{}, "", core.ErrNoKey},
		{"named", a.Named("account"), form{"a": "42"}, "account:42", nil},
		{"named, no key", a.Named("account"), form{}, "", core.ErrNoKey},
		{"named, skip", a.Named("account"), form{"a": "!skip"}, "", core.ErrSkip},
		{"hashed", a.Hashed(), form{"a": "abc"}, "ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0", nil},
		{"hashed, no key", a.Hashed(), form{}, "", core.ErrNoKey},
		{"hashed, skip", a.Hashed(), form{"a": "!skip"}, "", core.ErrSkip},
		{"keyed", a.HMAC([]byte("key")), form{"a": "The quick brown fox jumps over the lazy dog"}, "97yD9DBThCSxMpjmqm-xQ-9NWaFJRhdZl0edvC0aPNg", nil},
		{"keyed, no key", a.HMAC([]byte("key")), form{}, "", core.ErrNoKey},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			key, err := test.key.Read(test.request)
			if got := key.Raw(); got != test.want || !errors.Is(err, test.err) {
				t.Errorf("got %q, %v; want %q, %v", got, err, test.want, test.err)
			}
		})
	}
}

func TestKeysPanicAtRegistration(t *testing.T) {
	t.Parallel()
	var none core.Key[form]
	for name, register := range map[string]func(){
		"join of nothing":       func() { core.Join([]core.Key[form]{}...) },
		"join of nil":           func() { core.Join(field("a"), none) },
		"key of nil":            func() { core.KeyOf[form](nil) },
		"join of permits":       func() { core.Join(field("a"), field("b").Permits(2)) },
		"join of several":       func() { core.Join(core.All(field("a"), field("b"))) },
		"first of several":      func() { core.First(field("a"), core.All(field("b"))) },
		"all of nothing":        func() { core.All[form]() },
		"all of nil":            func() { core.All(field("a"), none) },
		"switch of nothing":     func() { core.Switch(func(form) string { return "" }, map[string]core.Key[form]{}) },
		"switch by nothing":     func() { core.Switch(nil, map[string]core.Key[form]{"a": field("a")}) },
		"describe nil":          func() { none.Describe("a", "") },
		"shared when by nil":    func() { field("a").SharedWhen(nil) },
		"first of nothing":      func() { core.First([]core.Key[form]{}...) },
		"when without a key":    func() { none.When(func(form) bool { return true }) },
		"when without a test":   func() { field("a").When(nil) },
		"getter of nil":         func() { core.Getter[form](nil) },
		"no name":               func() { field("a").Named("") },
		"a name with a colon":   func() { field("a").Named("a:b") },
		"a name like a length":  func() { field("a").Named("1") },
		"hashed nil":            func() { none.Hashed() },
		"hmac without secret":   func() { field("a").HMAC(nil) },
		"hmac nil":              func() { none.HMAC([]byte("s")) },
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
		text := panicOf(func() { noError(t, errorOf(field("a").HMAC(make([]byte, length)).Read(form{"a": "1"}))) })
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
				if key, err := field("a").Named(name).Read(form{"a": "1"}); key.Raw() != name+":1" || key.Name() != name || err != nil {
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
		for name, key := range map[string]core.Key[form]{
			"join":            core.Join(field("a"), field("b")),
			"join of one":     core.Join(field("a")),
			"join of three":   core.Join(field("a"), field("b"), field("a")),
			"join of a join":  core.Join(core.Join(field("a")), field("b")),
			"join of a named": core.Join(field("a").Named("n"), field("b")),
			"named join":      core.Join(field("a"), field("b")).Named("n"),
		} {
			k1, err1 := key.Read(one)
			k2, err2 := key.Read(two)
			if err1 != nil || err2 != nil {
				continue
			}
			same := a1 == a2 && (b1 == b2 || name == "join of one")
			if (k1.Raw() == k2.Raw()) != same {
				t.Errorf("%s: %q and %q make %q and %q", name, one, two, k1.Raw(), k2.Raw())
			}
		}
		join, err1 := core.Join(field("a"), field("b")).Read(one)
		named, err2 := field("a").Named("n").Read(two)
		if err1 == nil && err2 == nil && join.Raw() == named.Raw() {
			t.Errorf("join and named both make %q", join.Raw())
		}
		n1, err1 := field("a").Named("n").Read(one)
		n2, err2 := field("a").Named("n.m").Read(two)
		if err1 == nil && err2 == nil && n1.Raw() == n2.Raw() {
			t.Errorf("two names both make %q", n1.Raw())
		}
	})
}

// The name of a key is that of its outermost Named.
func TestNameOfKey(t *testing.T) {
	t.Parallel()
	account := field("a").Named("account")
	user := field("b").Named("user")
	always := func(form) bool { return true }
	for name, test := range map[string]struct {
		key     core.Key[form]
		request form
		want    string
	}{
		"plain":               {field("a"), form{"a": "1"}, ""},
		"named":               {account, form{"a": "1"}, "account"},
		"named twice":         {account.Named("outer"), form{"a": "1"}, "outer"},
		"first, the first":    {core.First(account, user), form{"a": "1", "b": "2"}, "account"},
		"first, the second":   {core.First(account, user), form{"b": "2"}, "user"},
		"named first":         {core.First(account, user).Named("payer"), form{"b": "2"}, "payer"},
		"when":                {account.When(always), form{"a": "1"}, "account"},
		"hashed":              {account.Hashed(), form{"a": "1"}, "account"},
		"keyed":               {account.HMAC([]byte("s")), form{"a": "1"}, "account"},
		"described":           {account.Describe("x", ""), form{"a": "1"}, "account"},
		"join of named parts": {core.Join(account, user), form{"a": "1", "b": "2"}, ""},
		"named join":          {core.Join(account, user).Named("pair"), form{"a": "1", "b": "2"}, "pair"},
	} {
		key, err := test.key.Read(test.request)
		if err != nil || key.Name() != test.want {
			t.Errorf("%s: name %q, %v; want %q", name, key.Name(), err, test.want)
		}
	}
}

func TestRequestKeyDoesNotPrintItself(t *testing.T) {
	t.Parallel()
	const secret = "iban DE02120300000000202051"
	key, err := core.Getter(func(s string) string { return s }).Read(secret)
	noError(t, err)
	asJSON, err := json.Marshal(key)
	noError(t, err)
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "key", key)
	for _, text := range []string{
		fmt.Sprint(key), fmt.Sprintf("%v %+v %#v %s %q", key, key, key, key, key), fmt.Sprintf("%v", []core.RequestKey{key}),
		fmt.Sprintf("%+v", struct{ Key core.RequestKey }{key}), string(asJSON), log.String(),
	} {
		if strings.Contains(text, "DE02") {
			t.Errorf("prints the key: %s", text)
		}
		if !strings.Contains(text, key.String()) {
			t.Errorf("does not print the digest: %s", text)
		}
	}
	if key.Raw() != secret {
		t.Error("Raw does not return the key")
	}
}

// Errors name a key as it is described last, and otherwise the function of the program.
func TestErrorNamesTheKey(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		key        core.Key[string]
		kind       error
		want, part string
	}{
		"empty": {failing(nil), core.ErrNoKey, `reqlock: no key: Header("X-Account") is empty`, `the header "X-Account"`},
		"no key": {
			failing(core.ErrNoKey), core.ErrNoKey, `reqlock: no key: Header("X-Account") is empty`, `the header "X-Account"`,
		},
		"invalid": {
			failing(fmt.Errorf("%w: given 2 times", core.ErrInvalidKey)), core.ErrInvalidKey,
			`reqlock: invalid key: Header("X-Account"): given 2 times`, `the header "X-Account"`,
		},
		"too large": {
			failing(core.ErrBodyTooLarge), core.ErrBodyTooLarge, `reqlock: body too large: Header("X-Account")`, `the header "X-Account"`,
		},
		"inside others": {
			core.Join(failing(nil).Hashed()).Named("a"), core.ErrNoKey,
			`reqlock: no key: Header("X-Account") is empty`, `the header "X-Account"`,
		},
		"first": {
			core.First(failing(nil), core.Getter(strings.TrimSpace), failing(nil)), core.ErrNoKey,
			`reqlock: no key: First(Header("X-Account"), Getter(strings.TrimSpace), Header("X-Account")) is empty`,
			`the header "X-Account" or the header "X-Account"`,
		},
		"a function of the program": {
			core.KeyOf(accountOf), nil, `reqlock: key function: core_test.accountOf: no database`, "",
		},
		"a named function of the program": {
			core.KeyOf(accountOf).Named("account"), nil, `reqlock: key function: core_test.accountOf: no database`, "",
		},
		"described twice": {
			core.KeyOf(accountOf).Describe("session()", "").Hashed().Describe("account()", ""), nil, `reqlock: key function: account(): no database`, "",
		},
		"the part of a described join": {
			core.Join(failing(nil)).Describe("pair()", "a pair"), core.ErrNoKey,
			`reqlock: no key: Header("X-Account") is empty`, `the header "X-Account"`,
		},
		"a part with a text of its own": {
			core.KeyOf(func(string) (string, error) {
				_, err := failing(nil).Read("")
				return "", fmt.Errorf("own text: %w", err)
			}).Named("a"), core.ErrNoKey, `own text: reqlock: no key: Header("X-Account") is empty`, `the header "X-Account"`,
		},
	} {
		_, err := test.key.Read("")
		if err == nil || err.Error() != test.want || test.kind != nil && !errors.Is(err, test.kind) {
			t.Errorf("%s: got %v, want %s", name, err, test.want)
		}
		if refusal, _ := core.RefusalOf(err); refusal.Part != test.part {
			t.Errorf("%s: the part is %q, want %q", name, refusal.Part, test.part)
		}
	}
	if _, err := failing(core.ErrSkip).Read(""); err != core.ErrSkip { //nolint:errorlint // unchanged
		t.Errorf("got %v", err)
	}
}

// A Key prints itself as a program writes it, and reads nothing for that.
func TestKeyAsText(t *testing.T) {
	t.Parallel()
	key := core.KeyOf(accountOf).Named("account").Permits(3)
	for want, key := range map[string]core.Key[string]{
		`KeyOf(core_test.accountOf).Named("account").Permits(3)`:     key,
		`Header("X-Account").Hashed().HMAC().Shared()`:               failing(nil).Hashed().HMAC([]byte("s")).Shared(),
		`Join(session(), Header("X-Account")).Named("n")`:            core.Join(core.KeyOf(accountOf).Describe("session()", ""), failing(nil)).Named("n"),
		`All(Getter(strings.TrimSpace), First(Header("X-Account")))`: core.All(core.Getter(strings.TrimSpace), core.First(failing(nil))),
		`Getter(strings.TrimSpace).When(core_test.isLong)`:           core.Getter(strings.TrimSpace).When(isLong),
		`Getter(strings.TrimSpace).SharedWhen(core_test.isLong)`:     core.Getter(strings.TrimSpace).SharedWhen(isLong),
		`Switch(strings.TrimSpace)`:                                  core.Switch(strings.TrimSpace, map[string]core.Key[string]{"a": failing(nil)}),
		`the zero Key`:                                               {},
	} {
		if got := fmt.Sprint(key); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func isLong(s string) bool { return len(s) > 80 }

// Nothing of the program runs while keys are made and combined.
func TestMakingAKeyRunsNothing(t *testing.T) {
	t.Parallel()
	runs := 0
	key := core.KeyOf(func(s string) (string, error) { runs++; return s, nil })
	condition := func(string) bool { runs++; return true }
	whole := core.All(core.Join(key, core.First(key).Named("a").Hashed()).When(condition).SharedWhen(condition), key.Permits(2))
	whole = core.Switch(func(s string) string { runs++; return s }, map[string]core.Key[string]{"x": whole, "y": key}).Named("s")
	if runs > 0 {
		t.Errorf("%d runs", runs)
	}
	locks := newLocker(t, newEmbedded(t), core.WithWait(time.Second))
	for text, leases := range map[string]int{"x": 2, "y": 1, "z": 0} {
		ctx, release, err := core.Enter(t.Context(), locks, text, whole)
		noError(t, err)
		held := 0
		for _, lease := range core.LeasesFromContext(ctx) {
			if lease != nil {
				held++
			}
		}
		if held != leases || len(core.LeasesFromContext(ctx)) != 2 {
			t.Errorf("%s: %d leases of %v", text, held, core.LeasesFromContext(ctx))
		}
		release()
	}
	if _, err := whole.Read("x"); err == nil || !strings.Contains(err.Error(), "several keys of All") {
		t.Errorf("Read: %v", err)
	}
	if _, err := (core.Key[string]{}).Read(""); err == nil {
		t.Error("the zero Key was read")
	}
}
