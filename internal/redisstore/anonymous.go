package redisstore

import (
	"errors"
	"regexp"
)

// namesUser is how Redis 7.2 and newer name the user who lacks a right.
var namesUser = regexp.MustCompile(`\bUser \S+ has no permissions`)

// anonymous returns what the server said without the name of the user.
func anonymous(said string) string {
	return namesUser.ReplaceAllString(said, "this user has no permissions")
}

// A hidden error is one of the server's without the name of the user.
type hidden struct {
	text string
	err  error
}

func (h *hidden) Error() string { return h.text }

func (h *hidden) Unwrap() error { return h.err }

// hide returns the error without the name of a user. The server's own error lies
// behind it.
func hide(err error) error {
	said := err.Error()
	if text := anonymous(said); text != said {
		return &hidden{text, err}
	}
	return err
}

// unhidden returns the server's own error.
func unhidden(err error) error {
	var h *hidden
	if errors.As(err, &h) {
		return h.err
	}
	return err
}
