package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/keyspace"
	"github.com/reqlock/reqlock/internal/redis/pipeline"
	"github.com/reqlock/reqlock/internal/redis/script"
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
	if !cmd.NoRetry() { // of the client itself, for a new connection
		return
	}
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
			for range 2 {
				if _, err := s.Take(t.Context(), load); err != nil {
					t.Fatal(err)
				}
				if _, err := s.Release(t.Context(), load); err != nil {
					t.Fatal(err)
				}
			}
			s.noWaiters = test.noWaiters
			if i := slices.Index(test.sent, "evalsha 6"); i >= 0 && s.native.state.Load() == supported {
				test.sent = slices.Concat(test.sent[:i], []string{"delifeq 3", "llen 2"}, test.sent[i+1:])
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

// The same of shared leases.
func TestFirstSendForASharedLeaseIsBrief(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		before    string
		change    change
		noWaiters bool
		ask       string
		sent      []string
	}{
		{"free", "", withoutHolder, true, "granted", []string{"evalsha 8", "evalsha 7"}},
		{"beside another", "shared ttl | | | B1*=ttl", withoutHolder, true, "granted", []string{"evalsha 8", "evalsha 7"}},
		{"no room", "B1 ttl", withoutHolder, true, "nothing", []string{"evalsha 8", "evalsha 7", "evalsha 12"}},
		{"a waiter that the caller does not know", "| B1", withoutHolder, true, "granted", []string{"evalsha 8", "evalsha 13", "evalsha 7"}},
		{"a known waiter", "", withoutHolder, false, "granted", []string{"evalsha 8", "evalsha 12"}},
		{"with a wish for the holder", "", withoutJoin, false, "granted", []string{"evalsha 13", "evalsha 12"}},
		{"with a number", "", numbers(1), false, "granted", []string{"evalsha 14", "evalsha 12"}},
		{"that joins", "", func(*storetest.AnyRequest) {}, false, "granted", []string{"evalsha 13", "evalsha 12"}},
	}
	server := redistest.Start(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			rdb := server.Client(t)
			s := newStore(t, rdb)
			for _, script := range []string{s.scripts.SharedAsk.Source.(string), s.scripts.SharedRelease.Source.(string)} {
				if err := rdb.ScriptLoad(t.Context(), script).Err(); err != nil {
					t.Fatal(err)
				}
			}
			stateOf(test.before).Put(t, rdb)
			rdb.Del(t.Context(), storetest.FenceName)
			s.noWaiters = test.noWaiters
			sent := &sentCommands{}
			rdb.AddHook(sent)
			if got := asking(permit, test.change).run(t, s); got.granted != (test.ask == "granted") {
				t.Errorf("ask: %+v", got)
			}
			releasing(permit).run(t, s)
			if !slices.Equal(sent.forms, test.sent) {
				t.Errorf("sent %q, want %q", sent.forms, test.sent)
			}
		})
	}
}

// The long form follows also where the first send was refused, and a second one may be granted.
func TestRefusalOfOneOfTwoBriefSendsDoesNotDecide(t *testing.T) {
	t.Parallel()
	x := &operation{store: &Store{scripts: script.New(false)}, brief: briefSharedTake}
	x.store.subscriber = modeSubscriber{mode: "P"}
	x.encodeScript(&x.store.scripts.SharedAsk)
	x.encodeKey(&x.queue, keyspace.QueueSuffix)
	x.encodeShared()
	x.encodeQueue(time.Second)
	x.encodeAsk(boolArg(false))
	refused := pipeline.Reply{Value: noRoom}
	if next := x.Fallback(x.Command(1), refused, 1); next != nil {
		t.Errorf("%v follows the only send", next)
	}
	if next := x.Fallback(x.Command(1), refused, 2); next == nil || len(next.Args()) != 13 {
		t.Errorf("%v follows one of two sends", next)
	}
}

// Shared leases may end before the script for both kinds of leases runs for an exclusive token.
func TestExclusiveTokenGetsNoSharedLease(t *testing.T) {
	t.Parallel()
	server := redistest.Reuse(t)
	rdb, direct := server.Client(t), server.Client(t)
	s := newStore(t, rdb)
	if err := rdb.ScriptLoad(t.Context(), s.scripts.SharedAsk.Source.(string)).Err(); err != nil {
		t.Fatal(err)
	}
	stateOf("shared ttl | | | B1*=ttl").Put(t, rdb)
	rdb.AddHook(beforeScript{s.scripts.SharedAsk.SHA, func() { direct.Del(t.Context(), storetest.LockName, storetest.SharedName) }})
	if got := enqueue.run(t, s); !got.granted {
		t.Errorf("%+v", got)
	}
	stateOf("A1 ttl").Check(t, direct)
}

// beforeScript is a hook that calls a function before each EVALSHA of a script.
type beforeScript struct {
	sha any
	do  func()
}

func (beforeScript) DialHook(next redis.DialHook) redis.DialHook { return next }

func (b beforeScript) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if args := cmd.Args(); len(args) > 1 && args[1] == b.sha {
			b.do()
		}
		return next(ctx, cmd)
	}
}

func (beforeScript) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
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
