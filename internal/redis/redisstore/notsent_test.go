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
)

// What was never sent is never granted, however the client tells of it: alone
// and in a batch.
func TestWhatWasNotSentIsNotGranted(t *testing.T) {
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
			server := redistest.Start(t)
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
			const n = 20 // some leave alone, some together
			granted := make(chan bool, 2*n)
			answered := func(answer store.Answer, err error) { granted <- err == nil || answer.Granted }
			for range n {
				s.Store.Take(storetest.Request(storetest.Me1).Take(), answered)
				s.Store.Enqueue(storetest.Request(storetest.Me1).Enqueue(), answered)
			}
			for range 2 * n {
				if <-granted {
					t.Fatal("granted, or refused by a holder, though nothing was sent")
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

func TestANilThatIsNoReplyIsNotBelieved(t *testing.T) {
	t.Parallel()
	silent := command.New(1, []any{"set"})
	if _, err := silent.Reply(storetest.ErrOpen); !errors.Is(err, storetest.ErrOpen) {
		t.Errorf("the error of the batch is lost: %v", err)
	}
	if _, err := decodeTake(replyOf(silent), asked(storetest.Request(storetest.Me1))); err == nil {
		t.Error("granted by a command that has neither a value nor an error")
	}
	silent.SetErr(redis.Nil)
	if answer, err := decodeTake(replyOf(silent), asked(storetest.Request(storetest.Me1))); err != nil || !answer.Granted {
		t.Errorf("a nil reply: %+v, %v", answer, err)
	}
}

// A SET NX that was not sent says nothing of the key.
func TestARefusalThatIsNoReplyIsNotBelieved(t *testing.T) {
	t.Parallel()
	silent := &command.SetNX{}
	silent.Reset([]any{"set"})
	if _, err := silent.Reply(storetest.ErrOpen); !errors.Is(err, storetest.ErrOpen) {
		t.Errorf("the error of the batch is lost: %v", err)
	}
	refused := storetest.ServerError("WRONGTYPE of a neighbour")
	if value, err := silent.Reply(refused); err != nil || value != command.WasSet(false) {
		t.Errorf("a neighbour's error: %v, %v", value, err)
	}
	if answer, err := decodeTake(replyOf(silent), asked(storetest.Request(storetest.Me1))); err != nil || answer.Granted {
		t.Errorf("%+v, %v", answer, err)
	}
}

func replyOf(c command.Command) (r pipeline.Reply) {
	r.Value, r.Err = c.Reply(nil)
	return r
}
