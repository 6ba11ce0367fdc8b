package redisstore

import (
	"strings"

	"github.com/redis/go-redis/v9"
)

// A command is what an exchange sends. It must be safe to run twice.
type command struct {
	args []any
	// keyPos is where its key stands, for the routing of a cluster client.
	keyPos int8
	// script is the one that args calls by its digest; nil in another command.
	script *script
}

// call returns the beginning of a command that calls a script by its digest,
// with room for so many keys and other arguments.
func (s *script) call(keys, args int) command {
	all := make([]any, 3, 3+keys+args)
	all[0], all[1], all[2] = "evalsha", s.sha, keys
	return command{args: all, keyPos: 3, script: s}
}

// instead returns what to send after an error of the server, which has run
// nothing: the script by its source, where the server does not know it, after a
// restart, a failover or SCRIPT FLUSH; and the script that stands in for SET
// with NX and GET, from then on, where the server does not know that form. It
// returns false where there is nothing else to send.
func (s *Store) instead(c command, err error) (command, bool) {
	switch text := err.Error(); {
	case c.script != nil && strings.HasPrefix(text, "NOSCRIPT"):
		args := append([]any{"eval", c.script.source}, c.args[2:]...)
		return command{args: args, keyPos: 3}, true
	case c.args[0] == "set" && strings.HasPrefix(text, "ERR syntax error"):
		s.oldServer.Store(true)
		return s.takeByScript(c.args[1], c.args[2], c.args[6]), true
	default:
		return command{}, false
	}
}

// takeCommand returns SET NX GET, or its stand-in on servers before Redis 7.
func (s *Store) takeCommand(name, token, ttl any) command {
	if s.oldServer.Load() {
		return s.takeByScript(name, token, ttl)
	}
	return command{args: []any{"set", name, token, "nx", "get", "px", ttl}, keyPos: 1}
}

func (s *Store) takeByScript(name, token, ttl any) command {
	c := s.scripts.take.call(1, 2)
	c.args = append(c.args, name, token, ttl)
	return c
}

// single is a command that go-redis must not repeat by itself; see the package
// comment.
type single struct{ *redis.Cmd }

// NoRetry forbids go-redis to send the command again.
func (single) NoRetry() bool { return true }
