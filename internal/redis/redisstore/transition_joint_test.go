package redisstore

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/keyspace"
	"github.com/reqlock/reqlock/internal/redis/pipeline"
	"github.com/reqlock/reqlock/internal/redis/script"
	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// Brief releases that leave together are one script, which does what each of them does alone, whatever the
// other keys have.
func TestReleasesTogetherDoWhatEachDoesAlone(t *testing.T) {
	t.Parallel()
	s, proxy, rdb := behindProxy(t, storetest.LongReads)
	s.native.state.Store(unsupported)
	ctx := t.Context()
	lockOf := func(key string) string { return string(s.names.AppendLock(nil, key)) }
	// release puts the value into the key, and a token into its queue if waits says so, and releases the key.
	// "list" and "text" are values of the wrong type.
	release := func(key, value, waits string) <-chan string {
		lock, result := lockOf(key), make(chan string, 1)
		queue := string(s.names.AppendCompanion(nil, []byte(lock), keyspace.QueueSuffix))
		rdb.Del(ctx, lock, queue)
		for name, value := range map[string]string{lock: value, queue: waits} {
			switch value {
			case "":
			case "list", storetest.Bob2:
				rdb.RPush(ctx, name, value)
			default:
				rdb.Set(ctx, name, value, storetest.TTL)
			}
		}
		r := storetest.Request(storetest.Me1)
		r.Key, r.NoWaiters, r.Bound = key, true, storetest.LongBound
		s.Store.Release(r.Release(), func(got store.ReleaseResult, err error) {
			why, _, _ := strings.Cut(fmt.Sprint(err), " ") // without the line of the script
			result <- fmt.Sprint(got.Status, why, rdb.Exists(ctx, lock).Val())
		})
		return result
	}
	states := [...]struct{ value, waits string }{
		{value: storetest.Me1},
		{value: storetest.Bob1},
		{},
		{value: "list"},
		{value: storetest.Marker},
		{value: storetest.Me1, waits: storetest.Bob2},
		{value: "list", waits: storetest.Bob2},
		{value: storetest.Me1, waits: "text"},
		{value: storetest.Me1},
	}
	// How many sources are sent: each release has its own if the server does not know the script, and the next ones
	// have that of the script.
	for round, sources := range []int{len(states), 1, 0, len(states), 1} {
		var want, got []string
		for i, state := range states {
			want = append(want, suite.Receive(t, "a release", release(fmt.Sprint("alone", i), state.value, state.waits)))
		}
		rdb.ConfigResetStat(ctx)
		letGo, seen := proxy.HoldCommand(redistest.Named("EVALSHA"))
		first := release("first", "", "")
		suite.Receive(t, "the first release is held", seen)
		var results []<-chan string
		for i, state := range states {
			results = append(results, release(fmt.Sprint("together", i), state.value, state.waits))
		}
		letGo()
		suite.Receive(t, "the first release", first)
		for _, result := range results {
			got = append(got, suite.Receive(t, "a release", result))
		}
		if !slices.Equal(got, want) {
			t.Errorf("round %d: %q, want %q", round, got, want)
		}
		stats := rdb.Info(ctx, "commandstats").Val()
		if isSent := strings.Contains(stats, "cmdstat_eval:"); isSent != (sources > 0) || isSent && !strings.Contains(stats, fmt.Sprintf("cmdstat_eval:calls=%d,", sources)) {
			t.Errorf("round %d: %s", round, stats)
		}
		if sources == 0 {
			if err := rdb.ScriptFlush(ctx).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Only brief releases of exclusive leases join. After the server has refused their script, their long forms follow, which
// never join: otherwise a slot that moves for long would refuse them again and again.
func TestRefusedReleasesHaveLongFormsAfterThem(t *testing.T) {
	t.Parallel()
	s := &Store{scripts: script.New(false)}
	var j command.Joint
	var joined []*operation
	for i, own := range []*script.Script{&s.scripts.Release, &s.scripts.SharedRelease, &s.scripts.Withdraw, &s.scripts.Release} {
		x := &operation{store: s, brief: briefRelease, arguments: arguments{script: own, args: []any{"evalsha", own.SHA, 2, "k", "q", "token", "ttl"}}}
		added := j.Add(x.Command(1))
		if added {
			joined = append(joined, x)
		}
		if added != (own == &s.scripts.Release) {
			t.Errorf("script %d joins: %t", i, added)
		}
	}
	j.AppendTo(nil)
	j.Receive(storetest.ServerError("TRYAGAIN Multiple keys request during rehashing of slot"))
	for _, x := range joined {
		_, err := x.briefScript.Reply(nil)
		if next := x.Fallback(&x.briefScript, pipeline.Reply{Err: err}, 1); next == nil || !slices.Equal(next.Args(), x.args) || j.Add(next) {
			t.Errorf("after %v: %v", err, next)
		}
	}
}

// On a server that has DELIFEQ, a release together with others says so.
func TestReleasesTogetherOfferNativeReleases(t *testing.T) {
	t.Parallel()
	s, _, rdb := behindProxy(t)
	source, _ := s.scripts.FreeMany.Source.(string)
	onValkey := strings.Replace(source, "redis.VALKEY_VERSION_NUM", "0x90000", 1)
	got, err := rdb.Eval(t.Context(), onValkey, []string{"k", "{k}:q"}, "token").Result()
	if fmt.Sprint(got) != fmt.Sprint([]int64{freedByValkey, 1}) || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}
