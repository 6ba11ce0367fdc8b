package redisstore

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/pipeline"
	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// faultOf takes a key and returns the fault. The take may last longer than its bound by
// storetest.Patience, because a busy machine schedules late.
func faultOf(t *testing.T, s *syncStore, bound time.Duration) *store.Fault {
	t.Helper()
	r := storetest.Request(storetest.Me1)
	r.Bound = bound
	begun := time.Now()
	_, err := s.Take(t.Context(), r)
	if took := time.Since(begun); took > bound+storetest.Patience {
		t.Errorf("took %v, the bound is %v", took, bound)
	}
	return storetest.AsFault(t, err)
}

func TestServerErrorsAreClassified(t *testing.T) {
	t.Parallel()
	configure := func(settings ...string) func(*testing.T, *redis.Client) {
		return func(t *testing.T, rdb *redis.Client) {
			t.Helper()
			for i := 0; i < len(settings); i += 2 {
				if err := rdb.ConfigSet(t.Context(), settings[i], settings[i+1]).Err(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	run := func(args ...any) func(*testing.T, *redis.Client) {
		return func(t *testing.T, rdb *redis.Client) {
			t.Helper()
			if err := rdb.Do(t.Context(), args...).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	tests := []struct {
		name      string
		provoke   func(*testing.T, *redis.Client)
		temporary bool
	}{
		{"READONLY", run("replicaof", "127.0.0.1", "1"), true},
		{"NOREPLICAS", configure("min-replicas-to-write", "1"), true},
		{"MASTERDOWN", func(t *testing.T, rdb *redis.Client) {
			t.Helper()
			configure("replica-serve-stale-data", "no")(t, rdb)
			run("replicaof", "127.0.0.1", "1")(t, rdb)
		}, true},
		{"OOM", configure("maxmemory", "1"), false},
		{"NOPERM", run("acl", "setuser", "default", "-set"), false},
		{"WRONGTYPE", run("rpush", storetest.LockName, "x"), false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			rdb := redistest.Reuse(t).Client(t)
			test.provoke(t, rdb)
			fault := faultOf(t, newStore(t, rdb), storetest.LongBound)
			if fault.Temporary != test.temporary || fault.Unknown {
				t.Errorf("%+v: %v", fault, fault)
			}
		})
	}
}

// WAIT fails if its master has become a replica since the script before it.
func testWaitAtReplicaIsTemporaryFault(t *testing.T, sentinels *redistest.Sentinels) {
	t.Helper()
	rdb := sentinels.Replicas()[0].Client(t)
	err := rdb.Do(t.Context(), "wait", 1, 1).Err()
	if err == nil || !command.NewFault(err, true).Temporary {
		t.Errorf("got %v", err)
	}
}

func TestBusyServerIsTemporaryFault(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--busy-reply-threshold", "10")
	rdb := server.Client(t, func(o *redis.Options) { o.ReadTimeout = 10 * time.Second })
	s := newStore(t, rdb)
	script := make(chan error, 1)
	go func() { script <- rdb.Eval(context.Background(), "while true do end", nil).Err() }()
	var err error
	suite.Eventually(t, "the server is busy", func() bool {
		_, err = s.Enqueue(t.Context(), storetest.Request(storetest.Me1))
		return err != nil
	})
	if fault := storetest.AsFault(t, err); !fault.Temporary || fault.Unknown || !strings.HasPrefix(err.Error(), "BUSY ") {
		t.Errorf("got %v", err)
	}
	if err := rdb.ScriptKill(t.Context()).Err(); err != nil {
		t.Errorf("kill the script: %v", err)
	}
	if err := suite.Receive(t, "the endless script ends", script); err == nil {
		t.Error("the endless script ended without an error")
	}
	if _, err := s.Enqueue(t.Context(), storetest.Request(storetest.Me1)); err != nil {
		t.Errorf("after the script was killed: %v", err)
	}
}

func TestStoppedServerIsTemporaryFault(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := newStore(t, server.Client(t))
	server.Kill()
	if fault := faultOf(t, s, storetest.LongBound); !fault.Temporary || fault.Unknown {
		t.Errorf("%+v: %v", fault, fault)
	}
	_, err := s.Outcome(t.Context(), storetest.Request(""))
	if fault := storetest.AsFault(t, err); !fault.Temporary || fault.Unknown {
		t.Errorf("outcome: %+v: %v", fault, fault)
	}
}

func TestClosedClientIsPermanentFault(t *testing.T) {
	t.Parallel()
	rdb := redistest.Reuse(t).Client(t)
	s := newStore(t, rdb)
	_ = rdb.Close()
	if fault := faultOf(t, s, storetest.LongBound); fault.Temporary || fault.Unknown || !errors.Is(fault, redis.ErrClosed) {
		t.Errorf("%+v: %v", fault, fault)
	}
}

func TestFaultsContainNoTokenAndNoKey(t *testing.T) {
	t.Parallel()
	rdb := redistest.Reuse(t).Client(t)
	s := newStore(t, rdb)
	if err := rdb.RPush(t.Context(), storetest.LockName, "x").Err(); err != nil {
		t.Fatal(err)
	}
	_, err := s.Take(t.Context(), storetest.Request("secret:1"))
	var fault *store.Fault
	if !errors.As(err, &fault) || fault.Temporary || fault.Unknown || !strings.HasPrefix(err.Error(), "WRONGTYPE") {
		t.Errorf("take of a list: %#v", err)
	}
	_, err = s.Enqueue(t.Context(), storetest.Request("secret:1"))
	if err == nil || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), storetest.LockName) {
		t.Errorf("enqueue for a list: %v", err)
	}
}

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
