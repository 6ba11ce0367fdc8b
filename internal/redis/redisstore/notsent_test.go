package redisstore

import (
	"context"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// breaker is a hook that keeps all commands back, as circuit breakers do.
type breaker struct{}

var errOpen = errors.New("the circuit is open")

func (breaker) DialHook(next redis.DialHook) redis.DialHook { return next }

func (breaker) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(context.Context, redis.Cmder) error { return errOpen }
}

func (breaker) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(context.Context, []redis.Cmder) error { return errOpen }
}

// What was never sent is never granted, however the client tells of it: alone
// and in a batch.
func TestWhatWasNotSentIsNotGranted(t *testing.T) {
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
			server := redistest.Start(t)
			options := &redis.Options{Addr: server.Addr()}
			if refuse != nil {
				refuse(t, server.Client(t), options)
			}
			rdb := redis.NewClient(options)
			t.Cleanup(func() { _ = rdb.Close() })
			if refuse == nil {
				rdb.AddHook(breaker{})
			}
			s := newStore(t, rdb)
			const n = 20 // some leave alone, some together
			granted := make(chan bool, 2*n)
			answered := func(answer store.Answer, err error) { granted <- err == nil || answer.Granted }
			for range n {
				s.Store.Take(request(me1), answered)
				s.Store.Enqueue(request(me1), answered)
			}
			for range 2 * n {
				if <-granted {
					t.Fatal("granted, or refused by a holder, though nothing was sent")
				}
			}
			if renewal, err := s.Renew(t.Context(), request(me1)); err == nil {
				t.Errorf("renew: %+v", renewal)
			}
			if released, err := s.Release(t.Context(), request(me1)); err == nil {
				t.Errorf("release: %+v", released)
			}
		})
	}
}

func TestANilThatIsNoReplyIsNotBelieved(t *testing.T) {
	silent := newSingle(1, []any{"set"})
	if _, err := silent.answer(errOpen); !errors.Is(err, errOpen) {
		t.Errorf("the error of the batch is lost: %v", err)
	}
	if _, err := decodeTake(replyOf(silent), asked(request(me1))); err == nil {
		t.Error("granted by a command that has neither a value nor an error")
	}
	silent.SetErr(redis.Nil)
	if answer, err := decodeTake(replyOf(silent), asked(request(me1))); err != nil || !answer.Granted {
		t.Errorf("a nil reply: %+v, %v", answer, err)
	}
}

// A SET NX that was not sent says nothing of the key.
func TestARefusalThatIsNoReplyIsNotBelieved(t *testing.T) {
	silent := &setNX{}
	silent.set([]any{"set"})
	if _, err := silent.answer(errOpen); !errors.Is(err, errOpen) {
		t.Errorf("the error of the batch is lost: %v", err)
	}
	refused := serverError("WRONGTYPE of a neighbour")
	if value, err := silent.answer(refused); err != nil || value != wasSet(false) {
		t.Errorf("a neighbour's error: %v, %v", value, err)
	}
	if answer, err := decodeTake(replyOf(silent), asked(request(me1))); err != nil || answer.Granted {
		t.Errorf("%+v, %v", answer, err)
	}
}

func replyOf(c command) (r reply) {
	r.value, r.err = c.answer(nil)
	return r
}
