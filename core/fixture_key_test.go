package core_test

import (
	"context"
	"errors"

	"github.com/reqlock/reqlock/core"
)

// failing returns a described key function that fails.
func failing(err error) core.KeyFunc[string] {
	return core.Describe(`Header("X-Account")`, `the header "X-Account"`, func(string) (string, error) { return "", err })
}

// accountOf is a key function of a program, without a description.
func accountOf(string) (string, error) { return "", errors.New("no database") }

// form is the request of the key tests.
type form map[string]string

func field(name string) core.KeyFunc[form] {
	return core.Func(func(f form) (string, error) {
		switch f[name] {
		case "!skip":
			return "", core.ErrSkip
		case "!bad":
			return "", core.ErrInvalidKey
		}
		return f[name], nil
	})
}

// enter enters and leaves at once. It returns the error of Enter.
func enter[R any, F ~func(R) (K, error), K string | core.RequestKey](ctx context.Context, locks *core.Locker, request R, keys ...F) error {
	_, done, err := core.Enter(ctx, locks, request, keys...)
	done() // is never nil
	return err
}
