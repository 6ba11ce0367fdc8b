package conformance

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/reqlock/reqlock/core"
)

// keyScenarios test the forms of idempotency keys.
func keyScenarios() []testCase {
	return []testCase{
		{"a missing key, required", everywhere, func(e *environment) {
			e.serveEndpoint(endpoint{}).refuses(core.ErrNoKey, httpRequest{})
		}},
		{"a missing key, optional: runs each time", everywhere, optionalKey},
		{"an empty key", everywhere, func(e *environment) {
			keysAreRefused(e, core.ErrNoKey, []string{""}, []string{"  "}, []string{`""`})
		}},
		{"a repeated key", everywhere, func(e *environment) {
			keysAreRefused(e, core.ErrInvalidKey, []string{"key-one", "key-two"}, []string{"key-one", "key-one"})
		}},
		{"a malformed key", everywhere, malformedKeys},
		{"the longest key, in bytes, and one byte more", everywhere, longestKey},
		{"a key, quoted and bare, with parameters and without, is one key", everywhere, oneKey},
		{"escapes in a quoted key", everywhere, escapes},
		{"the application requires a format of keys", everywhere, ownForm},
		{"a key in a header of another name", everywhere, ownHeader},
	}
}

// A request without the header runs without a key. A key that cannot be used is refused, and
// so is a request without its user.
func optionalKey(e *environment) {
	s := e.serveEndpoint(endpoint{own: ownOptions{optionalKey: true}})
	s.runsWith(http.StatusCreated, httpRequest{})
	s.runsWith(http.StatusCreated, httpRequest{})
	first := s.runsWith(http.StatusCreated, payment("optional"))
	s.replays(first, payment("optional"))
	s.refuses(core.ErrNoKey, httpRequest{keys: []string{""}})
	s.refuses(core.ErrInvalidKey, httpRequest{keys: []string{"a,b"}})
	noUser := e.serveEndpoint(endpoint{
		own: ownOptions{optionalKey: true},
		key: func(*http.Request) (string, error) { return "", core.ErrNoKey },
	})
	noUser.refuses(core.ErrNoKey, payment("optional"))
}

// keysAreRefused sends header values that are no keys, with the key required and optional.
func keysAreRefused(e *environment, err error, keys ...[]string) {
	e.Helper()
	required, optional := e.serveEndpoint(endpoint{}), e.serveEndpoint(endpoint{own: ownOptions{optionalKey: true}})
	for _, lines := range keys {
		required.refuses(err, httpRequest{keys: lines})
		optional.refuses(err, httpRequest{keys: lines})
	}
}

func malformedKeys(e *environment) {
	var lines [][]string
	for _, key := range []string{
		"a b", "a\tb", "one,two", "a;v=1", `a\b`, `a"b`, "schlüssel", "a\x80",
		`"`, `"open`, `"a" b`, `"a", "b"`, `"a\c"`, `"a\"`, "\"a\tb\"", `"schlüssel"`, `"a";V=1`, `"a";`,
	} {
		lines = append(lines, []string{key})
	}
	keysAreRefused(e, core.ErrInvalidKey, lines...)
}

func longestKey(e *environment) {
	s := e.serveEndpoint(endpoint{})
	longest := strings.Repeat("k", 512)
	first := s.runsWith(http.StatusCreated, keyed(longest))
	s.replays(first, keyed(`"`+longest+`"`))
	s.refuses(core.ErrInvalidKey, keyed(longest+"k"))
	s.refuses(core.ErrInvalidKey, keyed(`"`+longest+`k"`))
}

func oneKey(e *environment) {
	s := e.serveEndpoint(endpoint{})
	first := s.runsWith(http.StatusCreated, keyed("8e03978e-40d5"))
	for _, same := range []string{`"8e03978e-40d5"`, ` 8e03978e-40d5 `, `"8e03978e-40d5";v=1`, `"8e03978e-40d5"; a;b="c"`} {
		s.replays(first, keyed(same))
	}
	s.runsWith(http.StatusCreated, keyed("8E03978E-40D5"))
	s.runsWith(http.StatusCreated, keyed("token/with:more"))
}

// An escape stands for its character, within quotes only.
func escapes(e *environment) {
	s := e.serveEndpoint(endpoint{})
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

func ownForm(e *environment) {
	s := e.serveEndpoint(endpoint{key: func(r *http.Request) (string, error) {
		key := r.Header.Get("Idempotency-Key")
		if len(key) != 8 {
			return "", fmt.Errorf("%w: not of eight characters", core.ErrInvalidKey)
		}
		return key, nil
	}})
	s.refuses(core.ErrInvalidKey, keyed("1234567"))
	s.replays(s.runsWith(http.StatusCreated, keyed("12345678")), keyed("12345678"))
}

func ownHeader(e *environment) {
	s := e.serveEndpoint(endpoint{
		own: ownOptions{optionalKey: true, keyHeaders: []string{"X-Request-Key", "x-other-key"}},
		key: func(r *http.Request) (string, error) { return r.Header.Get("X-Request-Key"), nil },
	})
	given := func(name, key string) httpRequest { return httpRequest{header: http.Header{name: {key}}} }
	s.replays(s.runsWith(http.StatusCreated, given("X-Request-Key", "1")), given("X-Request-Key", "1"))
	s.refuses(core.ErrNoKey, given("X-Other-Key", "1"))
	s.runsWith(http.StatusCreated, payment("in a header that does not count"))
}
