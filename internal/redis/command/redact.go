package command

import (
	"errors"
	"regexp"
	"strings"

	"github.com/redis/go-redis/v9"
)

// namesUser is how Redis 7.2 and newer name the user who lacks a right.
var namesUser = regexp.MustCompile(`\bUser \S+ has no permissions`)

// namesArguments stands before the arguments of a command that a server does not
// know: keys and tokens.
const namesArguments = ", with args beginning with"

// RedactUser returns what the server said without the name of the user and without
// arguments of the command.
func RedactUser(said string) string {
	said, _, _ = strings.Cut(said, namesArguments)
	return namesUser.ReplaceAllString(said, "this user has no permissions")
}

// A redactedError is what is left of an error of the server's that told too much.
type redactedError string

func (h redactedError) Error() string { return string(h) }

// RedisError marks it as one of the server's.
func (redactedError) RedisError() {}

// redact returns the error without what nobody has to know. Nothing lies behind it
// that tells more.
func redact(err error) error {
	var fromServer redis.Error
	if !errors.As(err, &fromServer) {
		return err
	}
	said := err.Error()
	if text := RedactUser(said); text != said {
		return redactedError(text)
	}
	return err
}
