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
		s.note(cmd)
		return next(ctx, cmd)
	}
}

func (s *sentCommands) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			s.note(cmd)
		}
		return next(ctx, cmds)
	}
}

func (s *sentCommands) note(cmd redis.Cmder) {
	form := []string{cmd.Name()}
	for _, arg := range cmd.Args()[1:] {
		switch option := strings.ToLower(fmt.Sprint(arg)); option {
		case "nx", "get":
			form = append(form, option)
		}
	}
	s.forms = append(s.forms, fmt.Sprint(strings.Join(form, " "), " ", len(cmd.Args())))
}

func TestFirstSendIsBriefAndLongFormFollowsIfNeeded(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name                  string
		before                string
		withHolder, noWaiters bool
		take, release         string
		sent                  []string
	}{
		{"free, without waiters", "", false, true, "granted, waiting -1", "freed", []string{"set nx 6", "evalsha 6"}},
		{"free, with a waiter that the caller does not know", "| B1", true, true, "granted, waiting -1", "freed", []string{"set nx 6", "evalsha 6", "evalsha 11"}},
		{"free, with a known waiter", "", false, false, "granted, waiting -1", "freed", []string{"set nx 6", "evalsha 11"}},
		{"held, without a wish for the holder", "B1 ttl", false, false, "nothing", "nothing", []string{"set nx 6", "evalsha 11"}},
		{"held, with a wish for the holder", "B1 ttl", true, true, "by B1", "nothing", []string{"set nx 6", "set nx get 7", "evalsha 6", "evalsha 11"}},
		{"held by the token of the request", "A1 ttl", true, true, "granted, waiting -1", "freed", []string{"set nx 6", "set nx get 7", "evalsha 6"}},
	}
	server := redistest.Start(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			rdb := server.Client(t)
			s := newStore(t, rdb)
			s.noWaiters = true
			load := storetest.Request(storetest.Bob1) // the server loads the script, and shows whether it can do without
			load.Key = "load"
			if _, err := s.Release(t.Context(), load); err != nil {
				t.Fatal(err)
			}
			s.noWaiters = test.noWaiters
			if i := slices.Index(test.sent, "evalsha 6"); i >= 0 && s.native.state.Load() == supported {
				test.sent = slices.Concat(test.sent[:i], []string{"delifeq 3", "exists 2"}, test.sent[i+1:])
			}
			stateOf(test.before).Put(t, rdb)
			sent := &sentCommands{}
			rdb.AddHook(sent)
			if got := taking(func(r *storetest.AnyRequest) { r.WithHolder = test.withHolder }).run(t, s); got != outcomeOfText(test.take) {
				t.Errorf("take: %+v", got)
			}
			if got := release.run(t, s); got != outcomeOfText(test.release) {
				t.Errorf("release: %+v", got)
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
			if got := release.run(t, s); got.status != store.Freed {
				t.Errorf("%+v", got)
			}
			storetest.State{}.Check(t, rdb)
		})
	}
}
