package conformance

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/reqlock/reqlock/core"
)

// keyScenarios are about which idempotency keys there are.
func keyScenarios() []testCase {
	return []testCase{
		{"a missing key, required", everywhere, func(e *env) {
			e.shop(endpoint{}).refuses(core.ErrNoKey, sent{})
		}},
		{"a missing key, optional: runs each time", everywhere, optionalKey},
		{"an empty key", everywhere, func(e *env) {
			keysAreRefused(e, core.ErrNoKey, []string{""}, []string{"  "}, []string{`""`})
		}},
		{"a repeated key", everywhere, func(e *env) {
			keysAreRefused(e, core.ErrInvalidKey, []string{"key-one", "key-two"}, []string{"key-one", "key-one"})
		}},
		{"a malformed key", everywhere, malformedKeys},
		{"the longest key, in bytes, and one byte more", everywhere, longestKey},
		{"a key, quoted and bare, with parameters and without, is one key", everywhere, oneKey},
		{"escapes in a quoted key", everywhere, escapes},
		{"a key of a form that the application asks for", everywhere, ownForm},
		{"a key in a header of another name", everywhere, ownHeader},
	}
}

// Whether a key is needed depends on its header alone: one that is there and
// cannot be used is refused, and so is a request without its user.
func optionalKey(e *env) {
	s := e.shop(endpoint{own: ownOptions{optionalKey: true}})
	s.runsWith(http.StatusCreated, sent{})
	s.runsWith(http.StatusCreated, sent{})
	first := s.runsWith(http.StatusCreated, payment("optional"))
	s.replays(first, payment("optional"))
	s.refuses(core.ErrNoKey, sent{keys: []string{""}})
	s.refuses(core.ErrInvalidKey, sent{keys: []string{"a,b"}})
	nobody := e.shop(endpoint{
		own: ownOptions{optionalKey: true},
		key: func(*http.Request) (string, error) { return "", core.ErrNoKey },
	})
	nobody.refuses(core.ErrNoKey, payment("optional"))
}

// keysAreRefused sends keys that are none, with the key required and optional.
func keysAreRefused(e *env, err error, keys ...[]string) {
	e.Helper()
	required, optional := e.shop(endpoint{}), e.shop(endpoint{own: ownOptions{optionalKey: true}})
	for _, lines := range keys {
		required.refuses(err, sent{keys: lines})
		optional.refuses(err, sent{keys: lines})
	}
}

func malformedKeys(e *env) {
	var lines [][]string
	for _, key := range []string{
		"a b", "a\tb", "one,two", "a;v=1", `a\b`, `a"b`, "schlüssel", "a\x80",
		`"`, `"open`, `"a" b`, `"a", "b"`, `"a\c"`, `"a\"`, "\"a\tb\"", `"schlüssel"`, `"a";V=1`, `"a";`,
	} {
		lines = append(lines, []string{key})
	}
	keysAreRefused(e, core.ErrInvalidKey, lines...)
}

func longestKey(e *env) {
	s := e.shop(endpoint{})
	longest := strings.Repeat("k", 512)
	first := s.runsWith(http.StatusCreated, keyed(longest))
	s.replays(first, keyed(`"`+longest+`"`))
	s.refuses(core.ErrInvalidKey, keyed(longest+"k"))
	s.refuses(core.ErrInvalidKey, keyed(`"`+longest+`k"`))
}

func oneKey(e *env) {
	s := e.shop(endpoint{})
	first := s.runsWith(http.StatusCreated, keyed("8e03978e-40d5"))
	for _, same := range []string{`"8e03978e-40d5"`, ` 8e03978e-40d5 `, `"8e03978e-40d5";v=1`, `"8e03978e-40d5"; a;b="c"`} {
		s.replays(first, keyed(same))
	}
	s.runsWith(http.StatusCreated, keyed("8E03978E-40D5"))
	s.runsWith(http.StatusCreated, keyed("token/with:more"))
}

// An escape is the character that it stands for, and only in quotes.
func escapes(e *env) {
	s := e.shop(endpoint{})
	var answers []string
	for _, key := range []string{`"a\"b"`, `"a\\b"`, `"a b"`, "ab"} {
		first := s.runsWith(http.StatusCreated, keyed(key))
		s.replays(first, keyed(key))
		answers = append(answers, first.body)
	}
	slices.Sort(answers)
	if n := len(slices.Compact(answers)); n != 4 {
		e.Errorf("four keys have %d answers", n)
	}
}

func ownForm(e *env) {
	s := e.shop(endpoint{key: func(r *http.Request) (string, error) {
		key := r.Header.Get("Idempotency-Key")
		if len(key) != 8 {
			return "", fmt.Errorf("%w: not of eight characters", core.ErrInvalidKey)
		}
		return key, nil
	}})
	s.refuses(core.ErrInvalidKey, keyed("1234567"))
	s.replays(s.runsWith(http.StatusCreated, keyed("12345678")), keyed("12345678"))
}

func ownHeader(e *env) {
	s := e.shop(endpoint{
		own: ownOptions{optionalKey: true, keyHeaders: []string{"X-Request-Key", "x-other-key"}},
		key: func(r *http.Request) (string, error) { return r.Header.Get("X-Request-Key"), nil },
	})
	given := func(name, key string) sent { return sent{header: http.Header{name: {key}}} }
	s.replays(s.runsWith(http.StatusCreated, given("X-Request-Key", "1")), given("X-Request-Key", "1"))
	s.refuses(core.ErrNoKey, given("X-Other-Key", "1"))
	s.runsWith(http.StatusCreated, payment("in a header that does not count"))
}
