package core_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/core"
)

// A program can write its key functions in each of these forms, by inference alone.
func TestFormsOfKeyFunctions(t *testing.T) {
	t.Parallel()
	type ownFunc func(form) (string, error)
	var (
		plain    = func(f form) (string, error) { return f["a"], nil }
		own      = ownFunc(plain)
		rule     = field("a")
		literal  = func(f form) (core.RequestKey, error) { return core.NewKey(f["a"]), nil }
		calling  = func(f form) (core.RequestKey, error) { return core.Named("n", plain)(f) }
		always   = func(form) bool { return true }
		request  = form{"a": "1", "b": "2"}
		severals = []core.KeyFunc[form]{rule, core.Func(plain)}
	)
	for name, test := range map[string]struct {
		key       core.KeyFunc[form]
		want, sub string
	}{
		"func of a plain function": {core.Func(plain), "1", ""},
		"func of an own type":      {core.Func(own), "1", ""},
		"func of a KeyFunc":        {core.Func(core.Named("n", plain)), "n:1", "n"},
		"func of a literal":        {core.Func(literal), "1", ""},
		"func that calls another":  {core.Func(calling), "n:1", "n"},
		"named plain function":     {core.Named("n", plain), "n:1", "n"},
		"named own type":           {core.Named("n", own), "n:1", "n"},
		"named method value":       {core.Named("n", rule.Read), "n:1", "n"},
		"when around a plain one":  {core.When(always, plain), "1", ""},
		"describe a plain one":     {core.Describe("x", "", plain), "1", ""},
		"join of plain functions":  {core.Join(plain, plain), "1:11:1", ""},
		"join of rules":            {core.Join(rule, field("b")), "1:11:2", ""},
		"join of both":             {core.Join(rule, core.Func(plain)), "1:11:1", ""},
		"join of a slice":          {core.Join(severals...), "1:11:1", ""},
		"first of plain functions": {core.First(plain, plain), "1", ""},
		"hashed plain function":    {core.Hashed(own), "a4ayc_80_OGda4BO_1o_V0etpOqiLx1JwB5S3beHW0s", ""},
	} {
		if got, err := test.key.Read(request); got.Raw() != test.want || got.Name() != test.sub || err != nil {
			t.Errorf("%s: %q, name %q, %v", name, got.Raw(), got.Name(), err)
		}
	}
	locks := newLocker(t, newEmbedded(t))
	for name, err := range map[string]error{
		"plain functions": enter(t.Context(), locks, request, plain, plain),
		"own type":        enter(t.Context(), locks, request, own),
		"rules":           enter(t.Context(), locks, request, severals...),
	} {
		if err != nil {
			t.Errorf("Enter with %s: %v", name, err)
		}
	}
}

// The name of a key is that of its outermost Named.
func TestNameOfKey(t *testing.T) {
	t.Parallel()
	account := core.Named("account", field("a"))
	user := core.Named("user", field("b"))
	always := func(form) bool { return true }
	for name, test := range map[string]struct {
		key     core.KeyFunc[form]
		request form
		want    string
	}{
		"plain":               {field("a"), form{"a": "1"}, ""},
		"named":               {account, form{"a": "1"}, "account"},
		"named twice":         {core.Named("outer", account), form{"a": "1"}, "outer"},
		"first, the first":    {core.First(account, user), form{"a": "1", "b": "2"}, "account"},
		"first, the second":   {core.First(account, user), form{"b": "2"}, "user"},
		"named first":         {core.Named("payer", core.First(account, user)), form{"b": "2"}, "payer"},
		"when":                {core.When(always, account), form{"a": "1"}, "account"},
		"hashed":              {core.Hashed(account), form{"a": "1"}, "account"},
		"keyed":               {core.Keyed([]byte("s"), account), form{"a": "1"}, "account"},
		"described":           {core.Describe("x", "", account), form{"a": "1"}, "account"},
		"func":                {core.Func(account), form{"a": "1"}, "account"},
		"join of named parts": {core.Join(account, user), form{"a": "1", "b": "2"}, ""},
		"named join":          {core.Named("pair", core.Join(account, user)), form{"a": "1", "b": "2"}, "pair"},
	} {
		key, err := test.key.Read(test.request)
		if err != nil || key.Name() != test.want {
			t.Errorf("%s: name %q, %v; want %q", name, key.Name(), err, test.want)
		}
		if endpoint := key.Endpoint("POST", "/p"); endpoint.Name() != test.want || endpoint.Raw() != core.EndpointKey("POST", "/p", key.Raw()) {
			t.Errorf("%s: the endpoint is %q, %q", name, endpoint.Name(), endpoint.Raw())
		}
	}
}

func TestKeyDoesNotPrintItself(t *testing.T) {
	t.Parallel()
	const secret = "iban DE02120300000000202051"
	key := core.NewKey(secret)
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

// The name of a function is in its errors only if nothing around it has a description.
func TestDescriptionReplacesNameOfFunction(t *testing.T) {
	t.Parallel()
	wrapped := func(string) (string, error) {
		_, err := core.Func(accountOf)("")
		return "", fmt.Errorf("own text: %w", err)
	}
	for name, test := range map[string]struct {
		key  core.KeyFunc[string]
		want string
	}{
		"hashed":    {core.Hashed(accountOf), "core_test.accountOf: no database"},
		"when":      {core.When(func(string) bool { return true }, accountOf), "core_test.accountOf: no database"},
		"join":      {core.Join(accountOf, accountOf), "core_test.accountOf: no database"},
		"named":     {core.Named("a", core.Join(core.Func(accountOf))), `Named("a"): no database`},
		"described": {core.Describe("own()", "", core.Func(accountOf)), "own(): no database"},
		"own text":  {core.Named("a", wrapped), "own text: core_test.accountOf: no database"},
	} {
		_, err := test.key.Read("")
		if want := "reqlock: key function: " + test.want; err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
	}
	wantError(t, errorOf(core.First(core.Func(func(string) (string, error) { return "", nil })).Read("")), core.ErrNoKey)
}

func TestErrorNamesTheKeyFunction(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		key        core.KeyFunc[string]
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
			core.Named("a", core.Join(core.Hashed(failing(nil)))), core.ErrNoKey,
			`reqlock: no key: Header("X-Account") is empty`, `the header "X-Account"`,
		},
		"first": {
			core.First(failing(nil), core.Of(strings.TrimSpace), failing(nil)), core.ErrNoKey,
			`reqlock: no key: First(Header("X-Account"), Of(strings.TrimSpace), Header("X-Account")) is empty`,
			`the header "X-Account" or the header "X-Account"`,
		},
		"a function of the program": {
			core.Func(accountOf), nil, `reqlock: key function: core_test.accountOf: no database`, "",
		},
		"a named function of the program": {
			core.Named("account", accountOf), nil, `reqlock: key function: Named("account"): no database`, "",
		},
	} {
		_, err := test.key.Read("")
		if err == nil || err.Error() != test.want || test.kind != nil && !errors.Is(err, test.kind) {
			t.Errorf("%s: got %v, want %s", name, err, test.want)
		}
		if outcome, _ := core.RefusalOf(err); outcome.Part != test.part {
			t.Errorf("%s: the part is %q, want %q", name, outcome.Part, test.part)
		}
	}
	if _, err := failing(core.ErrSkip).Read(""); err != core.ErrSkip { //nolint:errorlint // unchanged
		t.Errorf("got %v", err)
	}
}
