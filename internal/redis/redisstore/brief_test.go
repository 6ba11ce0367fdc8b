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

// said notes the commands that leave, by name and number of arguments.
type said struct {
	storetest.OpenCircuit
	commands []string
}

func (s *said) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		words := []string{cmd.Name()}
		for _, arg := range cmd.Args()[1:] {
			switch text := strings.ToLower(fmt.Sprint(arg)); text {
			case "nx", "get":
				words = append(words, text)
			}
		}
		s.commands = append(s.commands, fmt.Sprint(strings.Join(words, " "), " ", len(cmd.Args())))
		return next(ctx, cmd)
	}
}

func (s *said) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// The first words of a take and a release are brief, and the long form follows
// only where they do not do.
func TestWhatIsBriefAtFirst(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		before storetest.State
		look   bool
		alone  bool
		take   store.Answer
		end    store.ReleaseStatus
		says   []string
	}{
		{
			name: "free, and nobody waits", alone: true,
			take: store.Answer{Granted: true}, end: store.Freed,
			says: []string{"set nx 6", "evalsha 6"},
		},
		{
			name: "somebody waits who was not known", before: storetest.State{Queue: []string{storetest.Bob1}}, look: true, alone: true,
			take: store.Answer{Granted: true}, end: store.Freed, // bob does not listen
			says: []string{"set nx 6", "evalsha 6", "evalsha 11"},
		},
		{
			name: "somebody is known to wait",
			take: store.Answer{Granted: true}, end: store.Freed,
			says: []string{"set nx 6", "evalsha 11"},
		},
		{
			name: "held, and nobody wants to know by whom", before: storetest.State{Value: storetest.Bob1, TTL: storetest.TTL},
			says: []string{"set nx 6", "evalsha 11"},
		},
		{
			name: "held, by whom?", before: storetest.State{Value: storetest.Bob1, TTL: storetest.TTL}, look: true, alone: true,
			take: store.Answer{Holder: storetest.Bob1},
			says: []string{"set nx 6", "set nx get 7", "evalsha 6", "evalsha 11"},
		},
		{
			name: "our own token, from an earlier exchange", before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL}, look: true, alone: true,
			take: store.Answer{Granted: true}, end: store.Freed,
			says: []string{"set nx 6", "set nx get 7", "evalsha 6"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			rdb := redistest.Start(t).Client(t)
			s := newStore(t, rdb)
			s.alone = test.alone
			warm := storetest.Request(storetest.Bob1) // so that the server knows the script
			warm.Key = "warm"
			if _, err := s.Release(t.Context(), warm); err != nil {
				t.Fatal(err)
			}
			test.before.Put(t, rdb)
			heard := &said{}
			rdb.AddHook(heard)
			r := storetest.Request(storetest.Me1)
			r.WithHolder = test.look
			got, err := s.Take(t.Context(), r)
			if err != nil || got.Granted != test.take.Granted || got.Holder != test.take.Holder {
				t.Errorf("take: %+v, %v", got, err)
			}
			released, err := s.Release(t.Context(), storetest.Request(storetest.Me1))
			if err != nil || released.Status != test.end {
				t.Errorf("release: %+v, %v", released, err)
			}
			if !slices.Equal(heard.commands, test.says) {
				t.Errorf("said %q, want %q", heard.commands, test.says)
			}
		})
	}
}

// A short release whose script the server has forgotten is sent by its source,
// and goes on from there.
func TestAShortReleaseAfterAFlush(t *testing.T) {
	t.Parallel()
	for name, line := range map[string][]string{"nobody waits": nil, "somebody waits": {storetest.Bob1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rdb := redistest.Start(t).Client(t)
			s := newStore(t, rdb)
			s.alone = true
			storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: line}.Put(t, rdb)
			if err := rdb.ScriptFlush(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			if got := release(t, s); got.end != store.Freed {
				t.Errorf("%+v", got)
			}
			storetest.State{}.Check(t, rdb)
		})
	}
}

// A server, or what stands before it, that knows no SET NX at all is asked by
// script, and not without end.
func TestAServerWithoutSetNXIsAskedByScript(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client(t)
	hook := &withoutSetNXGet{word: "nx"}
	rdb.AddHook(hook)
	s := newStore(t, rdb)
	if got := take(t, s); !got.granted || hook.refused != 1 {
		t.Errorf("%+v after %d refusals", got, hook.refused)
	}
}
