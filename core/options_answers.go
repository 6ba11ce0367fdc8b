package core

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/reqlock/reqlock/internal/bridge"
)

// WithBusyStatus sets the HTTP status of a request whose lock another one holds, which has the code
// "busy" or "wait_timeout": 409 if not set, or 423, 429 or 503. Few clients retry a 409 by themselves.
// More of them retry a 429 or a 503: the page [errors] names some. RefusalOf returns the status.
//
// The option has an effect on the middlewares of HTTP adapters only. The interceptors of RPC adapters
// refuse it.
//
// [errors]: https://github.com/reqlock/reqlock/blob/main/docs/errors.md#the-status-of-busy
func WithBusyStatus(status int) Option {
	return ofAnswers("WithBusyStatus", "write %s.WithErrorHandler, which chooses the status of a call", func(s *bridge.Settings) error {
		if !slices.Contains([]int{409, 423, 429, 503}, status) {
			return fmt.Errorf("reqlock: WithBusyStatus: %d is none of 409, 423, 429 and 503", status)
		}
		s.BusyStatus = status
		return nil
	})
}

// WithProblemType sets the beginning of the type of problem documents (RFC 9457), which the code of
// the refusal follows: about:blank if not set. So the type can be a page of your documentation:
//
//	core.WithProblemType("https://api.example.com/errors/") // .../errors/busy
//	core.WithProblemType("/errors#")                        // /errors#busy
//
// base is an absolute URL or a path, and ends in neither a letter nor a digit. The title of a document
// is then the name of the code, such as "Wait timeout", instead of that of the status. Refusal.Type
// has the type.
//
// The option has an effect on the middlewares of HTTP adapters only. The interceptors of RPC adapters
// refuse it.
func WithProblemType(base string) Option {
	const instead = "leave it out, because the ErrorInfo of a status has the code"
	return ofAnswers("WithProblemType", instead, func(s *bridge.Settings) error {
		s.ProblemType = base
		return checkProblemType(base)
	})
}

// checkProblemType returns the error of a base of WithProblemType, or nil.
func checkProblemType(base string) error {
	at, err := url.Parse(base + "busy")
	isPath := err == nil && strings.HasPrefix(base, "/") && at.Host == ""
	noURL := func(r rune) bool { return r <= ' ' || r > '~' }
	inWord := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	switch {
	case err != nil || !isPath && (at.Scheme == "" || at.Host == "") || strings.ContainsFunc(base, noURL):
		return fmt.Errorf("reqlock: WithProblemType: %q is neither an absolute URL nor a path that begins with a slash", base)
	case strings.TrimRightFunc(base, inWord) != base:
		return fmt.Errorf("reqlock: WithProblemType: the code follows %q: write a slash or # at its end", base)
	}
	return nil
}

// ofAnswers returns an option for the answers of HTTP middlewares. instead says what to write with an
// RPC adapter.
func ofAnswers(name, instead string, set func(*bridge.Settings) error) Option {
	const on = bridge.HTTPLock | bridge.HTTPIdempotent
	return scopedOption{option: ofRequests(set), name: name, on: on, instead: instead}
}
