package readiness

import (
	"context"
	"slices"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/keyspace"
)

// A lackError says which commands the server does not let the user run.
type lackError struct {
	says  string
	cause error
}

func (e *lackError) Error() string { return e.says }

// explain looks closer at a refusal: which commands are refused. A script that met
// one does not name it, and it may not be the only one.
func (s *scene) explain(ctx context.Context, err error) error {
	if said := err.Error(); !isUnknown(said) && refusedRight(said) != rightToCommand {
		return err
	}
	return s.lacking(ctx, err)
}

// lacking asks for each command by itself, with arguments that do no harm, and
// words which of them the server refuses. It returns err where it refuses none.
func (s *scene) lacking(ctx context.Context, err error) error {
	var refused, unknown []string
	note := func(said string) {
		name := namedCommand(said)
		switch {
		case name == "":
		case isUnknown(said) && !slices.Contains(unknown, name):
			unknown = append(unknown, name)
		case refusedRight(said) == rightToCommand && !slices.Contains(refused, name):
			refused = append(refused, name)
		}
	}
	note(err.Error())
	s.begun = true
	hasString := false
	for _, args := range s.commands() {
		if args[0] == "rpush" && !hasString {
			continue
		}
		failed := s.send(ctx, command.New(1, args))
		switch {
		case failed == nil:
			hasString = hasString || args[0] == "set"
			continue
		case command.IsTransport(failed):
			return err
		}
		note(failed.Error())
	}
	slices.Sort(refused)
	switch {
	case len(unknown) > 0:
		return &lackError{unknownAdvice(unknown...), err}
	case len(refused) > 0:
		return &lackError{commandAdvice(refused...), err}
	default:
		return err
	}
}

// commands are those that the scripts use, and those of scripts and pub/sub. They
// leave no key without a life: where a command would, it meets one of another type,
// or has too few arguments.
func (s *scene) commands() [][]any {
	lock := s.name()
	line := s.names.Companion(lock, keyspace.QueueSuffix)
	record := s.names.Companion(lock, keyspace.RecordSuffix)
	life := checkLife.Milliseconds()
	channel := s.channel()
	commands := [][]any{
		{"set", lock, "", "px", life},
		{"get", lock},
		{"pttl", lock},
		{"pexpire", lock, life},
		{"exists", lock},
		{"time"},
		{"ping"},
		{"llen", line},
		{"lindex", line, 0},
		{"lpos", line, ""},
		{"lrem", line, 0, ""},
		{"lpop", line},
		{"rpush", lock, ""},
		{"hdel", record, "s"},
		{"hget", record, "s"},
		{"hmget", record, "s"},
		{"hset", record, "s", "", "t"},
		{"del", record},
		{"eval", "return 1", 0},
		{"evalsha", s.scripts.Take.SHA, 0},
		{channel.publish, channel.name, ""},
	}
	if s.check.replicas.Wanted() {
		commands = append(commands, []any{"wait", 0, 1})
	}
	return commands
}
