package registry

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/keyspace"
)

// Read returns the record of a process with this id, under the prefix of its Locker. It reports
// found = false if there is none: the process has ended, has been silent for an hour, or is not registered. It needs the rights
// +hmget and +pttl.
func Read(ctx context.Context, rdb redis.UniversalClient, prefix, id string) (p Process, found bool, err error) {
	name := keyspace.New(prefix).Process(id)
	fields, ttl := command.New(1, FieldsOf(name)), command.New(1, []any{"pttl", name}) //nolint:contextcheck // exec gets them
	batchErr := exec(ctx, rdb, fields, ttl)
	values, err := fields.Reply(batchErr)
	if err != nil {
		return Process{}, false, command.Sanitize(err)
	}
	left, err := ttl.Reply(batchErr)
	if err != nil {
		return Process{}, false, command.Sanitize(err)
	}
	return DecodeReplies(values, left)
}

// FieldsOf returns the command that reads the fields of the record with this name.
func FieldsOf(name string) []any {
	args := []any{"hmget", name}
	for _, field := range fieldNames {
		args = append(args, field)
	}
	return args
}

// DecodeReplies decodes the replies to FieldsOf and to PTTL. It reports found = false if there is no
// key with the name. The errors are those of Decode, and of a reply that these commands do not have.
func DecodeReplies(values, ttl any) (p Process, found bool, err error) {
	list, isList := values.([]any)
	milliseconds, isNumber := ttl.(int64)
	if !isList || len(list) != len(fieldNames) || !isNumber {
		return Process{}, false, command.UnexpectedReply(values)
	}
	fields := make(map[string]string, len(list))
	for i, value := range list {
		if text, isText := value.(string); isText {
			fields[fieldNames[i]] = text
		}
	}
	const none = -2 // the reply of PTTL for a key that does not exist
	if milliseconds == none || len(fields) == 0 {
		return Process{}, false, nil
	}
	p, err = Decode(fields, time.Duration(milliseconds)*time.Millisecond)
	return p, err == nil, err
}

// writeScript writes the record KEYS[1], which expires after ARGV[1] milliseconds, with the fields and
// values that follow. Two commands could leave a record that never expires, if the second one is lost.
const writeScript = `redis.call('HSET', KEYS[1], unpack(ARGV, 2))
return redis.call('PEXPIRE', KEYS[1], ARGV[1])`

// write writes a record that expires after ttl.
func write(ctx context.Context, rdb redis.UniversalClient, name string, p *Process, ttl time.Duration) error {
	args := append([]any{"eval", writeScript, 1, name, ttl.Milliseconds()}, Encode(p, ttl)...)
	set := command.New(3, args) //nolint:contextcheck // exec gets it
	_, err := set.Reply(exec(ctx, rdb, set))
	return err
}

// remove deletes a record.
func remove(ctx context.Context, rdb redis.UniversalClient, name string) error {
	del := command.New(1, []any{"del", name}) //nolint:contextcheck // exec gets it
	_, err := del.Reply(exec(ctx, rdb, del))
	return err
}

// exec sends commands for one key as a pipeline.
func exec(ctx context.Context, rdb redis.UniversalClient, commands ...*command.Generic) error {
	pipe := rdb.Pipeline()
	for _, one := range commands {
		_ = pipe.Process(ctx, one)
	}
	return command.Exec(func() error {
		_, err := pipe.Exec(ctx)
		return err
	})
}
