package redisstore

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/pipeline"
)

// Which commands two brief releases send, each of the state before, after a server has offered the native
// ones. TestTransitions on Valkey 9 shows that they do what the script does.
func TestNativeRelease(t *testing.T) {
	t.Parallel()
	native, brief := []string{"DELIFEQ"}, []string{"EVALSHA"}
	for name, test := range map[string]struct {
		before, want string
		refusal      string // of DELIFEQ; "-" closes the connection, "late" does after it has deleted the key, "failed" then replies with the error of a proxy, and "script" refuses the script
		first, then  []string
	}{
		"the key is freed":                    {before: "A1 ttl", want: "freed", first: native, then: native},
		"another has the key":                 {before: "B1 ttl", want: "nothing", first: slices.Concat(native, brief), then: slices.Concat(native, brief)},
		"a token waits, and is dead":          {before: "A1 ttl | B1", want: "freed", first: slices.Concat(native, brief), then: slices.Concat(native, brief)},
		"a token waits, and the script fails": {before: "A1 ttl | B1", want: "freed", refusal: "script", first: slices.Concat(native, brief), then: slices.Concat(native, brief)},
		"the server is older":                 {before: "A1 ttl", want: "freed", refusal: "ERR unknown command 'delifeq'", first: slices.Concat(native, brief), then: brief},
		"a proxy refuses":                     {before: "A1 ttl", want: "freed", refusal: "unsupported command 'delifeq'", first: slices.Concat(native, brief), then: brief},
		"the user may not":                    {before: "A1 ttl", want: "freed", refusal: "NOPERM this user has no permissions", first: slices.Concat(native, brief), then: brief},
		"the reply is lost":                   {before: "A1 ttl", want: "unsure", refusal: "late", first: slices.Concat(native, brief)},
		"a proxy loses the reply":             {before: "A1 ttl", want: "unsure", refusal: "failed", first: slices.Concat(native, brief)},
		"a proxy closes":                      {before: "A1 ttl", want: "freed", refusal: "-", first: slices.Concat(native, brief), then: brief},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			embedded := miniredis.RunT(t)
			var mu sync.Mutex
			var sent []string
			embedded.Server().SetPreHook(func(client *server.Peer, command string, args ...string) (answered bool) {
				mu.Lock()
				defer mu.Unlock()
				if command == "EVALSHA" || command == "DELIFEQ" { // LLEN is sent by scripts, too
					sent = append(sent, command)
				}
				switch {
				case command == "EVALSHA" && test.refusal == "script":
					client.WriteError("TRYAGAIN Multiple keys request during rehashing of slot")
					return true
				case command != "DELIFEQ":
					return false
				case test.refusal == "late":
					embedded.Del(args[0])
					client.Close()
				case test.refusal == "failed":
					embedded.Del(args[0])
					client.WriteError("upstream failure")
				case test.refusal == "-":
					client.Close()
				case test.refusal != "" && test.refusal != "script":
					client.WriteError(test.refusal)
				default:
					value, _ := embedded.Get(args[0])
					if value == args[1] && embedded.Del(args[0]) {
						client.WriteInt(1)
					} else {
						client.WriteInt(0)
					}
				}
				return true
			})
			rdb := redis.NewClient(&redis.Options{Addr: embedded.Addr()})
			defer func() { _ = rdb.Close() }()
			s := newStore(t, rdb)
			if err := rdb.ScriptLoad(t.Context(), s.scripts.Release.Source.(string)).Err(); err != nil {
				t.Fatal(err)
			}
			s.noWaiters = true
			s.native.offer()
			for _, want := range [][]string{test.first, test.then} {
				if want == nil {
					continue
				}
				stateOf(test.before).Put(t, rdb)
				mu.Lock()
				sent = nil
				mu.Unlock()
				if got := release.run(t, s); got != outcomeOfText(test.want) {
					t.Errorf("%+v, want %s", got, test.want)
				}
				mu.Lock()
				if !slices.Equal(sent, want) {
					t.Errorf("sent %v, want %v", sent, want)
				}
				mu.Unlock()
			}
		})
	}
}

// In a cluster, a server that refuses the native release decides for all, also if another one replies to such a release later.
func TestNativeReleaseStaysOff(t *testing.T) {
	t.Parallel()
	x := &operation{store: &Store{}}
	x.store.native.state.Store(tried)
	x.args = append(x.array[:0], "evalsha", "sha", 2, "k", "q", "token", 1)
	x.script = &x.store.scripts.Enqueue
	x.afterNative(pipeline.Reply{Err: errors.New("NOPERM this user has no permissions")}, 1)
	x.afterNative(pipeline.Reply{Value: command.Deleted}, 1)
	if x.store.native.mayTry() {
		t.Error("a native release is sent after one was refused")
	}
}
