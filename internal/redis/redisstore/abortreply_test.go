package redisstore

import (
	"context"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// restores is a hook that replies to each command that an attempt has restored its record.
type restores struct{ storetest.OpenCircuit }

func (restores) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(_ context.Context, cmd redis.Cmder) error {
		cmd.(*command.Generic).SetVal([]any{int64(1), int64(2)}) //nolint:forcetypeassert // as the store sends it
		return nil
	}
}

// A commit may restore the record. An abort does not, so such a reply to it is an error.
func TestReplyIsDecodedByTheEnding(t *testing.T) {
	t.Parallel()
	rdb := redistest.Reuse(t).Client(t)
	rdb.AddHook(restores{})
	s := newStore(t, rdb)
	r := storetest.AttemptRequest(storetest.Me1)
	r.Ending = store.Commit
	if got, err := s.Release(t.Context(), r); err != nil || got.Record != store.Restored {
		t.Errorf("commit: %+v, %v", got, err)
	}
	r.Ending = store.Abort
	var unexpected *command.UnexpectedReplyError
	if got, err := s.Release(t.Context(), r); !errors.As(err, &unexpected) {
		t.Errorf("abort: %+v, %v", got, err)
	}
}
