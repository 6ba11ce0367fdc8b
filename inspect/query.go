package inspect

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/command"
)

// commandBound limits the time of a command or of a batch.
const commandBound = 5 * time.Second

// A query is a command that reads, and its reply. keyPos is the index of its first key in args.
type query struct {
	keyPos   int8
	args     []any
	command  *command.Generic // nil before send
	batchErr error
}

// The indexes of keys.
const (
	noKey    = 0
	keyFirst = 1
)

func newQuery(keyPos int8, args ...any) *query { return &query{keyPos: keyPos, args: args} }

// A pipeliner is a client, or one connection of a client.
type pipeliner interface{ Pipeline() redis.Pipeliner }

// send sends the queries as one batch.
func send(ctx context.Context, node pipeliner, queries []*query) {
	ctx, cancel := context.WithTimeout(ctx, commandBound)
	defer cancel()
	pipe := node.Pipeline()
	for _, q := range queries {
		q.command = command.New(q.keyPos, q.args) //nolint:contextcheck // Process gets it
		_ = pipe.Process(ctx, q.command)
	}
	err := command.Exec(func() error {
		_, err := pipe.Exec(ctx)
		return err
	})
	for _, q := range queries {
		q.batchErr = err
	}
}

// ask sends one query, and returns its reply.
func ask(ctx context.Context, node pipeliner, q *query) (any, error) {
	send(ctx, node, []*query{q})
	return q.reply()
}

// reply returns the reply.
func (q *query) reply() (any, error) { return q.command.Reply(q.batchErr) }

// replyOfKey returns the reply. It is nil if the key has another type.
func (q *query) replyOfKey() (any, error) {
	value, err := q.reply()
	if err != nil && isOtherKey(err) {
		return nil, nil //nolint:nilnil // see above
	}
	return value, err
}
