package readiness

import (
	"context"
	"slices"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/keyspace"
)

// A commandsError names the commands that the server refuses to the user.
type commandsError struct {
	text  string
	cause error
}

func (e *commandsError) Error() string { return e.text }

// explain finds the commands that the server refuses, if err is such a refusal. The error of a
// script does not name the refused command, and the server may refuse more commands.
func (p *probe) explain(ctx context.Context, err error) error {
	if reply := err.Error(); !isUnknown(reply) && refusedRight(reply) != rightToCommand {
		return err
	}
	return p.findRefused(ctx, err)
}

// findRefused sends each command alone, with harmless arguments. It returns an error that names
// the refused commands, or err if the server refuses none.
func (p *probe) findRefused(ctx context.Context, err error) error {
	var refused, unknown []string
	classify := func(reply string) {
		name := namedCommand(reply)
		switch {
		case name == "":
		case isUnknown(reply) && !slices.Contains(unknown, name):
			unknown = append(unknown, name)
		case refusedRight(reply) == rightToCommand && !slices.Contains(refused, name):
			refused = append(refused, name)
		}
	}
	classify(err.Error())
	p.mayHaveKeys = true
	hasString := false
	for _, args := range p.commands() {
		if args[0] == "rpush" && !hasString {
			continue
		}
		failed := p.send(ctx, command.New(1, args))
		switch {
		case failed == nil:
			hasString = hasString || args[0] == "set"
			continue
		case command.IsTransport(failed):
			return err
		}
		classify(failed.Error())
	}
	slices.Sort(refused)
	switch {
	case len(unknown) > 0:
		return &commandsError{unknownAdvice(unknown...), err}
	case len(refused) > 0:
		return &commandsError{commandAdvice(refused...), err}
	default:
		return err
	}
}

// subscriptions returns the commands of a client that commands does not return, because each of them
// would change the connection.
func (p *probe) subscriptions() [][]any {
	channel := p.channel()
	if channel.unsubscribe == nil {
		return [][]any{{"subscribe", channel.name}}
	}
	return [][]any{{"ssubscribe", channel.name}, {"sunsubscribe", channel.name}, {"asking"}, {"cluster", "slots"}}
}

// commands returns the commands of the scripts and of the Store. They leave no key without a
// TTL: a command that could do so gets a key of another type, or too few arguments.
func (p *probe) commands() [][]any {
	lock := p.name()
	queue := p.names.Companion(lock, keyspace.QueueSuffix)
	record := p.names.Companion(lock, keyspace.RecordSuffix)
	shared := p.names.Companion(lock, keyspace.SharedSuffix)
	ttl := minTTL.Milliseconds()
	channel := p.channel()
	commands := [][]any{
		{"set", lock, "", "px", ttl},
		{"exists", lock},
		{"get", lock},
		{"pttl", lock},
		{"pexpire", lock, ttl},
		{"pexpireat", queue, 1},
		{"time"},
		{"ping"},
		{"llen", queue},
		{"lindex", queue, 0},
		{"lpos", queue, ""},
		{"lrem", queue, 0, ""},
		{"lpop", queue},
		{"lrange", queue, 0, -1},
		{"rpush", lock, ""},
		{"zadd", shared, 0, "", 0},
		{"zcard", shared},
		{"zcount", shared, 0, 0},
		{"zrange", shared, 0, -1},
		{"zrem", shared, ""},
		{"zremrangebyscore", shared, 0, 0},
		{"zscore", shared, ""},
		{"del", record},
		{"eval", "return 1", 0},
		{"evalsha", p.scripts.Take.SHA, 0},
		{channel.publish, channel.name, ""},
	}
	if p.check.replicas.Wanted() {
		commands = append(commands, []any{"wait", 0, 1})
	}
	if p.check.Scans {
		commands = append(commands, p.searching()...)
	}
	if p.check.Registers {
		commands = append(commands, p.registering())
	}
	return commands
}

// searching returns the commands of a search. They find no key.
func (p *probe) searching() [][]any {
	queue := p.names.Companion(p.name(), keyspace.QueueSuffix)
	return [][]any{{"scan", 0, "match", queue, "count", 1, "type", "string"}, {"getrange", p.name(), 0, 0}}
}

// trySearch checks that the user may search, if the Store will.
func (p *probe) trySearch(ctx context.Context) error {
	if !p.check.Scans {
		return nil
	}
	for _, args := range p.searching() {
		if err := p.send(ctx, command.New(0, args)); err != nil {
			return err
		}
	}
	return nil
}

// registering returns a command of a process that registers. It has too few arguments, and changes nothing.
func (p *probe) registering() []any {
	return []any{"hset", p.names.Companion(p.name(), keyspace.QueueSuffix), "s", "", "t"}
}

// tryRegister checks that the user may register a process, if the process will.
func (p *probe) tryRegister(ctx context.Context) error {
	if !p.check.Registers {
		return nil
	}
	err := p.send(ctx, command.New(0, p.registering()))
	if err != nil && (command.IsTransport(err) || refusedRight(err.Error()) != noRight) {
		return err
	}
	return nil
}
