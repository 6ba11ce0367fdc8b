package core_test

import (
	"context"
	"errors"

	"github.com/reqlock/reqlock/core"
)

// failing returns a described key that fails.
func failing(err error) core.Key[string] {
	return core.KeyOf(func(string) (string, error) { return "", err }).Describe(`Header("X-Account")`, `the header "X-Account"`)
}

// accountOf is the function of a key of a program, without a description.
func accountOf(string) (string, error) { return "", errors.New("no database") }

// form is the request of the key tests.
type form map[string]string

func field(name string) core.Key[form] {
	return core.KeyOf(func(f form) (string, error) {
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
func enter[R any](ctx context.Context, locks *core.Locker, request R, keys ...core.Key[R]) error {
	_, done, err := core.Enter(ctx, locks, request, core.All(keys...))
	done() // is never nil
	return err
}
