package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// sentCommands is a hook that records the form of each command: the name, NX and GET, and the
// number of arguments.
type sentCommands struct {
	storetest.OpenCircuit
	forms []string
}

func (s *sentCommands) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		form := []string{cmd.Name()}
		for _, arg := range cmd.Args()[1:] {
			switch option := strings.ToLower(fmt.Sprint(arg)); option {
			case "nx", "get":
				form = append(form, option)
			}
		}
		s.forms = append(s.forms, fmt.Sprint(strings.Join(form, " "), " ", len(cmd.Args())))
		return next(ctx, cmd)
	}
}

func (s *sentCommands) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func TestFirstSendIsBriefAndLongFormFollowsIfNeeded(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name       string
		before     storetest.State
		withHolder bool
		noWaiters  bool
		take       store.Answer
		release    store.ReleaseStatus
		sent       []string
	}{
		{
			name: "free, without waiters", noWaiters: true,
			take: store.Answer{Granted: true}, release: store.Freed,
			sent: []string{"set nx 6", "evalsha 6"},
		},
		{
			name: "free, with a waiter that the caller does not know", before: storetest.State{Queue: []string{storetest.Bob1}}, withHolder: true, noWaiters: true,
			take: store.Answer{Granted: true}, release: store.Freed, // the waiter does not listen
			sent: []string{"set nx 6", "evalsha 6", "evalsha 11"},
		},
		{
			name: "free, with a known waiter",
			take: store.Answer{Granted: true}, release: store.Freed,
			sent: []string{"set nx 6", "evalsha 11"},
		},
		{
			name: "held, without a wish for the holder", before: storetest.State{Value: storetest.Bob1, TTL: storetest.TTL},
			sent: []string{"set nx 6", "evalsha 11"},
		},
		{
			name: "held, with a wish for the holder", before: storetest.State{Value: storetest.Bob1, TTL: storetest.TTL}, withHolder: true, noWaiters: true,
			take: store.Answer{Holder: storetest.Bob1},
			sent: []string{"set nx 6", "set nx get 7", "evalsha 6", "evalsha 11"},
		},
		{
			name: "held by the token of the request", before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL}, withHolder: true, noWaiters: true,
			take: store.Answer{Granted: true}, release: store.Freed,
			sent: []string{"set nx 6", "set nx get 7", "evalsha 6"},
		},
	}
	server := redistest.Start(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			rdb := server.Client(t)
			s := newStore(t, rdb)
			s.noWaiters = test.noWaiters
			load := storetest.Request(storetest.Bob1) // the server loads the script
			load.Key = "load"
			if _, err := s.Release(t.Context(), load); err != nil {
				t.Fatal(err)
			}
			test.before.Put(t, rdb)
			sent := &sentCommands{}
			rdb.AddHook(sent)
			r := storetest.Request(storetest.Me1)
			r.WithHolder = test.withHolder
			got, err := s.Take(t.Context(), r)
			if err != nil || got.Granted != test.take.Granted || got.Holder != test.take.Holder {
				t.Errorf("take: %+v, %v", got, err)
			}
			released, err := s.Release(t.Context(), storetest.Request(storetest.Me1))
			if err != nil || released.Status != test.release {
				t.Errorf("release: %+v, %v", released, err)
			}
			if !slices.Equal(sent.forms, test.sent) {
				t.Errorf("sent %q, want %q", sent.forms, test.sent)
			}
		})
	}
}

// After NOSCRIPT the brief release is sent with the source of the script, and the long form
// still follows.
func TestBriefReleaseSurvivesScriptFlush(t *testing.T) {
	t.Parallel()
	for name, queue := range map[string][]string{"no waiter": nil, "one waiter": {storetest.Bob1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rdb := redistest.Reuse(t).Client(t)
			s := newStore(t, rdb)
			s.noWaiters = true
			storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: queue}.Put(t, rdb)
			if err := rdb.ScriptFlush(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			if got := release(t, s); got.status != store.Freed {
				t.Errorf("%+v", got)
			}
			storetest.State{}.Check(t, rdb)
		})
	}
}
