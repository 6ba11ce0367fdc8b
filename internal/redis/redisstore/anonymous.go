package redisstore

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

// anonymous returns what the server said without the name of the user and without
// arguments of the command.
func anonymous(said string) string {
	said, _, _ = strings.Cut(said, namesArguments)
	return namesUser.ReplaceAllString(said, "this user has no permissions")
}

// A hiddenError is what is left of an error of the server's that told too much.
type hiddenError string

func (h hiddenError) Error() string { return string(h) }

// RedisError marks it as one of the server's.
func (hiddenError) RedisError() {}

// hide returns the error without what nobody has to know. Nothing lies behind it
// that tells more.
func hide(err error) error {
	var fromServer redis.Error
	if !errors.As(err, &fromServer) {
		return err
	}
	said := err.Error()
	if text := anonymous(said); text != said {
		return hiddenError(text)
	}
	return err
}
