package command

import (
	"errors"
	"regexp"
	"strings"

	"github.com/redis/go-redis/v9"
)

// userName matches the user without a right, as Redis 7.2 and newer write it.
var userName = regexp.MustCompile(`\bUser \S+ has no permissions`)

// argumentsPrefix stands before the arguments of an unknown command: keys and tokens.
const argumentsPrefix = ", with args beginning with"

// RedactUser returns an error message of a server without the name of the user and without
// the arguments of the command.
func RedactUser(message string) string {
	message, _, _ = strings.Cut(message, argumentsPrefix)
	return userName.ReplaceAllString(message, "this user has no permissions")
}

// A redactedError is an error of a server without the user and the arguments. It wraps
// nothing, because the original error has both.
type redactedError string

func (e redactedError) Error() string { return string(e) }

// RedisError marks the error as one that a server sent.
func (redactedError) RedisError() {}

// redact returns the error without the user's name and the arguments of the command.
func redact(err error) error {
	var fromServer redis.Error
	if !errors.As(err, &fromServer) {
		return err
	}
	message := err.Error()
	if redacted := RedactUser(message); redacted != message {
		return redactedError(redacted)
	}
	return err
}
