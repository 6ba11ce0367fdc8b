package redisstore

import (
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/pipeline"
	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A command that was never sent is never granted, alone and in a batch, whatever error the
// client returns.
func TestUnsentCommandIsNotGranted(t *testing.T) {
	t.Parallel()
	for name, refuse := range map[string]func(t *testing.T, admin *redis.Client, o *redis.Options){
		"wrong password": func(t *testing.T, admin *redis.Client, o *redis.Options) {
			t.Helper()
			admin.ConfigSet(t.Context(), "requirepass", "right")
			o.Password = "wrong"
		},
		"wrong user, old protocol": func(t *testing.T, admin *redis.Client, o *redis.Options) {
			t.Helper()
			admin.ConfigSet(t.Context(), "requirepass", "right")
			o.Username, o.Password, o.Protocol = "nobody", "wrong", 2
		},
		"no such database": func(_ *testing.T, _ *redis.Client, o *redis.Options) { o.DB = 99 },
		"a hook":           nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Reuse(t)
			options := &redis.Options{Addr: server.Addr()}
			if refuse != nil {
				refuse(t, server.Client(t), options)
			}
			rdb := redis.NewClient(options)
			t.Cleanup(func() { _ = rdb.Close() })
			if refuse == nil {
				rdb.AddHook(storetest.OpenCircuit{})
			}
			s := newStore(t, rdb)
			const n = 20 // some are sent alone, some in a batch
			granted := make(chan bool, 2*n)
			answered := func(answer store.Answer, err error) { granted <- err == nil || answer.Granted }
			for range n {
				s.Store.Take(storetest.Request(storetest.Me1).Take(), answered)
				s.Store.Enqueue(storetest.Request(storetest.Me1).Enqueue(), answered)
			}
			for range 2 * n {
				if suite.Receive(t, "each request is answered", granted) {
					t.Fatal("granted or refused, although nothing was sent")
				}
			}
			if renewal, err := s.Renew(t.Context(), storetest.Request(storetest.Me1)); err == nil {
				t.Errorf("renew: %+v", renewal)
			}
			if released, err := s.Release(t.Context(), storetest.Request(storetest.Me1)); err == nil {
				t.Errorf("release: %+v", released)
			}
		})
	}
}

func TestNilWithoutReplyIsNotAGrant(t *testing.T) {
	t.Parallel()
	unsent := command.New(1, []any{"set"})
	if _, err := unsent.Reply(storetest.ErrOpen); !errors.Is(err, storetest.ErrOpen) {
		t.Errorf("the error of the batch is lost: %v", err)
	}
	if _, err := decodeTake(replyOf(unsent), operationFor(storetest.Request(storetest.Me1))); err == nil {
		t.Error("granted by a command that has neither a value nor an error")
	}
	unsent.SetErr(redis.Nil)
	if answer, err := decodeTake(replyOf(unsent), operationFor(storetest.Request(storetest.Me1))); err != nil || !answer.Granted {
		t.Errorf("a nil reply: %+v, %v", answer, err)
	}
}

// A SET NX that was not sent must not look refused.
func TestFalseWithoutReplyIsNotARefusal(t *testing.T) {
	t.Parallel()
	unsent := &command.SetNX{}
	unsent.Reset([]any{"set"})
	if _, err := unsent.Reply(storetest.ErrOpen); !errors.Is(err, storetest.ErrOpen) {
		t.Errorf("the error of the batch is lost: %v", err)
	}
	refused := storetest.ServerError("WRONGTYPE of another command")
	if value, err := unsent.Reply(refused); err != nil || value != command.WasSet(false) {
		t.Errorf("the error of another command: %v, %v", value, err)
	}
	if answer, err := decodeTake(replyOf(unsent), operationFor(storetest.Request(storetest.Me1))); err != nil || answer.Granted {
		t.Errorf("%+v, %v", answer, err)
	}
}

func replyOf(c command.Command) (r pipeline.Reply) {
	r.Value, r.Err = c.Reply(nil)
	return r
}
