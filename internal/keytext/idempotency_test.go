package keytext_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/keytext"
)

const uuid = "8e03978e-40d5-43e8-bc93-6894a57f9324"

func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	longest := strings.Repeat("x", keytext.MaxLen)
	for name, test := range map[string]struct {
		line    string
		want    string
		wantErr error
	}{
		"bare":                   {uuid, uuid, nil},
		"quoted":                 {`"` + uuid + `"`, uuid, nil},
		"bare, blanks around":    {" \t" + uuid + "\t ", uuid, nil},
		"quoted, blanks around":  {"\t \"" + uuid + "\" \t", uuid, nil},
		"upper case":             {"ABC", "ABC", nil},
		"one character":          {"0", "0", nil},
		"all bare characters":    {bareCharacters, bareCharacters, nil},
		"the same, quoted":       {`"` + bareCharacters + `"`, bareCharacters, nil},
		"all quoted characters":  {`" !\"#+,-./:;<=>?@[\\]^_{|}~"`, ` !"#+,-./:;<=>?@[\]^_{|}~`, nil},
		"bare integer":           {"42", "42", nil},
		"quoted integer":         {`"42"`, "42", nil},
		"bare decimal":           {"1.0", "1.0", nil},
		"bare bytes":             {":YQ==:", ":YQ==:", nil},
		"bare inner list":        {"(a)", "(a)", nil},
		"bare with equals sign":  {"a=1", "a=1", nil},
		"quoted space":           {`"a b"`, "a b", nil},
		"quoted space alone":     {`" "`, " ", nil},
		"quoted blanks at edges": {`" a "`, " a ", nil},
		"quoted comma":           {`"a,b"`, "a,b", nil},
		"quoted semicolon":       {`"a;b"`, "a;b", nil},
		"escaped quote":          {`"a\"b"`, `a"b`, nil},
		"escaped backslash":      {`"a\\b"`, `a\b`, nil},
		"escapes in a row":       {`"\\\"\\"`, `\"\`, nil},
		"longest bare":           {longest, longest, nil},
		"longest quoted":         {`"` + longest + `"`, longest, nil},
		"longest, escaped":       {`"` + strings.Repeat(`\\`, keytext.MaxLen) + `"`, strings.Repeat(`\`, keytext.MaxLen), nil},

		"empty":                    {"", "", core.ErrNoKey},
		"blank":                    {" \t ", "", core.ErrNoKey},
		"quoted empty":             {`""`, "", core.ErrNoKey},
		"quoted empty, parameters": {`"";a`, "", core.ErrNoKey},

		"too long":               {longest + "x", "", core.ErrInvalidKey},
		"too long, quoted":       {`"` + longest + `x"`, "", core.ErrInvalidKey},
		"bare space":             {"a b", "", core.ErrInvalidKey},
		"bare tab":               {"a\tb", "", core.ErrInvalidKey},
		"bare comma":             {"a,b", "", core.ErrInvalidKey},
		"bare list":              {"a, a", "", core.ErrInvalidKey},
		"bare parameter":         {"a;v=1", "", core.ErrInvalidKey},
		"bare backslash":         {`a\b`, "", core.ErrInvalidKey},
		"quote inside":           {`a"b`, "", core.ErrInvalidKey},
		"quote at the end":       {`a"`, "", core.ErrInvalidKey},
		"quote at the beginning": {`"a`, "", core.ErrInvalidKey},
		"quote alone":            {`"`, "", core.ErrInvalidKey},
		"single quotes are bare": {`'a'`, `'a'`, nil},
		"display string":         {`%"a"`, "", core.ErrInvalidKey},
		"comma alone":            {",", "", core.ErrInvalidKey},
		"quoted list":            {`"a", "b"`, "", core.ErrInvalidKey},
		"quoted list of equals":  {`"a","a"`, "", core.ErrInvalidKey},
		"quoted, comma after":    {`"a",`, "", core.ErrInvalidKey},
		"two strings":            {`"a" "b"`, "", core.ErrInvalidKey},
		"trailing junk":          {`"a"b`, "", core.ErrInvalidKey},
		"trailing quote":         {`"a""`, "", core.ErrInvalidKey},
		"bad escape":             {`"a\b"`, "", core.ErrInvalidKey},
		"escaped end":            {`"a\"`, "", core.ErrInvalidKey},
		"escape at the end":      {`"a\`, "", core.ErrInvalidKey},
		"control character":      {"a\x00b", "", core.ErrInvalidKey},
		"quoted control":         {"\"a\x1fb\"", "", core.ErrInvalidKey},
		"escaped control":        {"\"a\\\nb\"", "", core.ErrInvalidKey},
		"quoted tab":             {"\"a\tb\"", "", core.ErrInvalidKey},
		"DEL":                    {"a\x7f", "", core.ErrInvalidKey},
		"quoted DEL":             {"\"\x7f\"", "", core.ErrInvalidKey},
		"line feed around":       {uuid + "\n", "", core.ErrInvalidKey},
		"not ASCII":              {"é", "", core.ErrInvalidKey},
		"quoted, not ASCII":      {`"é"`, "", core.ErrInvalidKey},
		"not UTF-8":              {"a\xff", "", core.ErrInvalidKey},
		"no-break space around":  {"\u00a0a", "", core.ErrInvalidKey},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key, err := keytext.IdempotencyKey([]string{test.line})
			check(t, key, err, test.want, test.wantErr)
		})
	}
}

// An error states the reason, and contains nothing of the key.
func TestIdempotencyKeyErrorsAreDiscreet(t *testing.T) {
	t.Parallel()
	for _, lines := range [][]string{
		{"secret", "secret"},
		{"secret,"},
		{"secret\x00"},
		{`"secret`},
		{`"secret"secret`},
		{`"secret\s"`},
		{"\"secret\x7f\""},
		{"secret" + strings.Repeat("x", keytext.MaxLen)},
	} {
		if _, err := keytext.IdempotencyKey(lines); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", lines, err)
		}
	}
}

const bareCharacters = "!#$%&'()*+-./0123456789:<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[]^_`abcdefghijklmnopqrstuvwxyz{|}~"

// A key without quotes consists of the visible characters except four.
func TestIdempotencyKeyBareBytes(t *testing.T) {
	t.Parallel()
	for c := range 256 {
		_, err := keytext.IdempotencyKey([]string{"a" + string([]byte{byte(c)}) + "b"})
		if want := c < 0x80 && strings.ContainsRune(bareCharacters, rune(c)); (err == nil) != want {
			t.Errorf("%#x: %v", c, err)
		}
	}
}

// More than one line is an error, for any lines.
func TestIdempotencyKeyLines(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		lines   []string
		wantErr error
	}{
		"none":         {nil, core.ErrNoKey},
		"two":          {[]string{"a", "b"}, core.ErrInvalidKey},
		"two equal":    {[]string{"a", "a"}, core.ErrInvalidKey},
		"two forms":    {[]string{"a", `"a"`}, core.ErrInvalidKey},
		"an empty one": {[]string{"", "a"}, core.ErrInvalidKey},
		"two empty":    {[]string{"", ""}, core.ErrInvalidKey},
		"a cut string": {[]string{`"a`, `b"`}, core.ErrInvalidKey},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key, err := keytext.IdempotencyKey(test.lines)
			check(t, key, err, "", test.wantErr)
		})
	}
}

// Parameters follow RFC 9651, and change nothing.
func TestIdempotencyKeyParameters(t *testing.T) {
	t.Parallel()
	for parameters, ok := range map[string]bool{
		"": true, ";v": true, ";v=1": true, "; v=1": true, ";   v=1;w": true, ";*=1": true, ";*a.-_9*": true,
		";v=-1": true, ";v=0": true, ";v=007": true, ";v=-0": true, ";v=999999999999999": true,
		";v=1.5": true, ";v=-123456789012.125": true,
		`;v="x"`: true, `;v=""`: true, `;v="a, \"b\"; \\"`: true,
		";v=tok": true, ";v=*": true, ";v=a/b:c!#$%&'*+-.^_`|~9": true,
		";v=::": true, ";v=:YQ==:": true, ";v=?0": true, ";v=?1": true, ";v=@1659578233": true, ";v=@-1": true,
		`;v=%""`: true, `;v=%"f%c3%bc"`: true, ";v=1;v=2": true, ";v;V": false,

		";": false, ";;v": false, "; ": false, " ;v": false, ";\tv": false, ";v ": true, ";v=1 x": false, ";v w": false,
		";V": false, ";1": false, ";-a": false, ";é": false, ";v=": false, ";v= 1": false, ";v =1": false,
		";v=1000000000000000": false, ";v=1.": false, ";v=.5": false, ";v=1.1234": false, ";v=1234567890123.1": false,
		";v=-": false, ";v=--1": false, ";v=1a": false, ";v=+1": false,
		`;v="x`: false, `;v="\x"`: false, ";v=\"\x7f\"": false, ";v=\"\t\"": false, `;v="x"y`: false,
		";v=a,b": false, ",": false, ";v=1,": false, `;v="x", "b"`: false,
		";v=:YQ==": false, ";v=:Y Q:": false, ";v=?": false, ";v=?2": false, ";v=?true": false,
		";v=@": false, ";v=@1.5": false, ";v=@x": false, `;v=%"%C3"`: false, `;v=%"%c"`: false, `;v=%"`: false, ";v=%a": false,
		";v=(a)": false, ";v=[": false, "\n": false, ";v\n": false,
	} {
		key, err := keytext.IdempotencyKey([]string{`"k"` + parameters})
		if ok != (err == nil && key == "k") || !ok && (key != "" || !errors.Is(err, core.ErrInvalidKey)) {
			t.Errorf("%q: %q, %v", parameters, key, err)
		}
	}
}

// quotedForm encodes a key as RFC 9651 serializes a string.
func quotedForm(key string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
}

// field is an independent form of the grammar: a string with possible parameters, or a
// text.
var field = regexp.MustCompile(`^[ \t]*(?:"(?:[ !#-\[\]-~]|\\["\\])*"(?:;.*)?|[^\x00- "\\,;\x7f-\x{10ffff}]*)[ \t]*$`)

// For any input, a key is printable ASCII within the limit, its two forms are one key, and
// a list of two is no key.
func FuzzIdempotencyKey(f *testing.F) {
	for _, seed := range []string{
		"", uuid, `"` + uuid + `"`, ` "a\"b\\" `, `"a";v=1; w="x, \"y\"";z=?0;d=@1;b=:YQ==:;t=*a/b;s=%"%c3"`, `"a\b"`, `"a`, `a"`,
		"a b", "a,b", "a;b", `a\b`, "\"a\x00\"", "é", `"é"`, "\xff", "\x7f", `"" `, `"a" "b"`, `"a";`, "\t a\t",
		strings.Repeat("x", 512), `"` + strings.Repeat(`\"`, 513) + `"`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		parse := func(lines ...string) (string, error) { return keytext.IdempotencyKey(lines) }
		key, err := parse(line)
		if err != nil {
			if key != "" || errors.Is(err, core.ErrNoKey) == errors.Is(err, core.ErrInvalidKey) {
				t.Fatalf("%q: %q, %v", line, key, err)
			}
			return
		}
		if key == "" || len(key) > keytext.MaxLen || strings.ContainsFunc(key, func(c rune) bool { return c < ' ' || c > '~' }) {
			t.Fatalf("%q is the key %q", line, key)
		}
		if !field.MatchString(line) {
			t.Fatalf("%q is the key %q, and is none by the grammar", line, key)
		}
		for _, same := range []string{
			quotedForm(key), " \t" + line + "\t ", quotedForm(key) + ";a", quotedForm(key) + `; a="b, \"c";d=1.5`,
		} {
			if got, err := parse(same); got != key || err != nil {
				t.Fatalf("%q is the key %q, and %q is %q, %v", line, key, same, got, err)
			}
		}
		if !strings.ContainsAny(key, " \",;\\") {
			if got, err := parse(key); got != key || err != nil {
				t.Fatalf("%q is the key %q, which bare is %q, %v", line, key, got, err)
			}
		}
		for _, list := range [][]string{
			{line, line},
			{line, ""},
			{line + "," + line},
			{line + ", " + line},
			{line + " " + line},
			{strings.Trim(line, " \t") + `"`},
		} {
			if got, err := parse(list...); !errors.Is(err, core.ErrInvalidKey) {
				t.Fatalf("%q is a key, and %q is %q, %v", line, list, got, err)
			}
		}
	})
}
