package command

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Sanitize returns the error without what must not get into a log: bytes of a reply that
// go-redis cannot parse, the user's name, and the arguments of the command. The texts of
// package net, of TLS and of an error reply with an error code stay.
//
// Sanitize replaces an error of package context by ErrNoReply with its text: it is about the
// deadline of a command, not about the caller's context.
func Sanitize(err error) error {
	text := err.Error()
	isUnreadable := hasReply(text) || errors.Is(err, strconv.ErrSyntax) || errors.Is(err, strconv.ErrRange)
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		if isUnreadable {
			return fmt.Errorf("%w (%w)", ErrNoReply, errUnreadable)
		}
		return fmt.Errorf("%w (%s)", ErrNoReply, text)
	case isUnreadable:
		return errUnreadable
	case IsMasterless(err): // one line for each Sentinel, mostly the same
		lines := slices.Compact(strings.Split(text, "\n"))
		return errors.New(RedactUser(strings.Join(lines, "; ")))
	default:
		return redact(err)
	}
}

// errUnreadable replaces an error of go-redis about a reply. A part of the reply is lost or
// changed, so any bytes of it may be a token or a stored answer.
var errUnreadable = errors.New("go-redis cannot parse the reply")

// clientTexts removes the texts of go-redis that have no byte of a reply.
var clientTexts = strings.NewReplacer(
	redis.ErrClosed.Error(), "", redis.ErrPoolExhausted.Error(), "", redis.ErrPoolTimeout.Error(), "", redis.Nil.Error(), "",
	"redis: all sentinels specified in configuration are unreachable", "",
	"redis: cluster has no nodes", "",
	"redis: Conn is in a bad state", "",
	"redis: connection is not usable", "",
	"redis: connection not available", "",
	"redis: connection unusable (reply stream desynchronized)", "",
	"redis: timed out trying to mark connection as unusable", "",
)

// replyText matches an error that go-redis or its number parser may have made from a reply. An
// unknown text of go-redis matches, too. The name of a host before a colon does not.
var replyText = regexp.MustCompile(`(?m)(^|: |\()(redis: |bigInt\(|strconv\.)`)

// hasReply reports whether the text of an error may have bytes of a reply that go-redis could
// not parse.
func hasReply(text string) bool { return replyText.MatchString(clientTexts.Replace(text)) }

// errorCode matches the error code at the beginning of an error reply.
var errorCode = regexp.MustCompile(`^[A-Z]{3,}( |$)`)

// userName matches the user without a right, as Redis 7.2 and newer write it.
var userName = regexp.MustCompile(`\bUser \S+ has no permissions`)

// unknownCommand matches the error of an unknown command, without the arguments that follow:
// keys and tokens.
var unknownCommand = regexp.MustCompile("^ERR unknown command ['`][A-Za-z|_-]{1,20}['`]")

// RedactUser returns an error message of a server without the name of the user and without
// the arguments of the command. More than two quotes may be around arguments, also in a message
// that has lost bytes.
func RedactUser(message string) string {
	if intact := unknownCommand.FindString(message); intact != "" {
		return intact
	}
	if first := strings.IndexAny(message, "'`"); !strings.Contains(message, "NOPERM") && // it quotes commands, and has "can't"
		strings.Count(message, "'")+strings.Count(message, "`") > 2 {
		message = strings.TrimRight(message[:first], " ")
	}
	return userName.ReplaceAllString(message, "this user has no permissions")
}

// A redactedError is an error of a server without the user and the arguments. It wraps
// nothing, because the original error has both.
type redactedError string

func (e redactedError) Error() string { return string(e) }

// RedisError marks the error as one that a server sent.
func (redactedError) RedisError() {}

// redact returns the error without the user's name and the arguments of the command. An error
// reply without an error code may be a part of another reply, so its text is removed.
func redact(err error) error {
	var fromServer redis.Error
	if !errors.As(err, &fromServer) {
		return err
	}
	if !errorCode.MatchString(fromServer.Error()) {
		return &UnexpectedReplyError{"error without a code"}
	}
	message := err.Error()
	if redacted := RedactUser(message); redacted != message {
		return redactedError(redacted)
	}
	return err
}
