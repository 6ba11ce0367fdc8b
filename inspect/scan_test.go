package inspect_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/inspect"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// fill adds keys of other programs, and locks of which one in a hundred has three waiters.
const fill = `
for i = ARGV[1] + 1, ARGV[1] + ARGV[2] do redis.call('SET', 'session:' .. i, 'x') end
for i = ARGV[3] + 1, ARGV[3] + ARGV[4] do
	redis.call('SET', 'reqlock:account:' .. i, ARGV[5] .. ':' .. i, 'PX', 3600000)
	if i % 100 == 0 then redis.call('RPUSH', '{reqlock:account:' .. i .. '}:q', ARGV[5] .. ':1', ARGV[5] .. ':2', ARGV[5] .. ':3') end
end
return 1`

// fillServer runs fill in parts: a script that runs for long makes Redis refuse commands.
func fillServer(t *testing.T, server *redistest.Server, foreign, locks int) {
	t.Helper()
	admin, parts := redistest.AdminClient(t, server.Addr()), 100
	for n := range parts {
		err := admin.Eval(t.Context(), fill, nil, n*foreign/parts, foreign/parts, n*locks/parts, locks/parts, strings.Repeat("a", 32)).Err()
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A list of many locks among many keys is bounded in time and memory, and leaves the server time for others.
func TestManyLocksAmongManyKeys(t *testing.T) {
	t.Parallel()
	foreign, locks := 2_000, 1_000
	if suite.IsFull() {
		foreign, locks = 500_000, 100_000
	}
	server := start(t)
	fillServer(t, server, foreign, locks)
	rdb := server.Client(t, func(o *redis.Options) { o.ReadTimeout = time.Minute })
	for name, test := range map[string]struct {
		filter inspect.Filter
		limit  int
		want   int
		isAll  bool
	}{
		"all":          {inspect.Filter{}, 1_000_000, locks, true},
		"to the limit": {inspect.Filter{}, locks / 10, locks / 10, false},
		"with waiters": {inspect.Filter{MinWaiting: 3}, 10_000, locks / 100, true},
		"one account":  {inspect.Filter{Match: "account:77"}, 10_000, 1, true},
	} {
		t.Run(name, func(t *testing.T) { //nolint:paralleltest // they are measured
			i := newInspector(t, rdb, inspect.WithLimit(test.limit))
			before := allocated()
			begun := time.Now()
			page := must(i.Locks(t.Context(), test.filter))(t)
			took := time.Since(begun)
			if len(page.Locks) != test.want || page.Truncated == test.isAll || page.DBSize != foreign+locks+locks/100 || (page.Scanned == page.DBSize) != test.isAll {
				t.Errorf("%d locks, %+v", len(page.Locks), page.Scan)
			}
			kept := allocated() - before
			t.Logf("%d locks of %d keys: %v, %d KB kept, %+v", len(page.Locks), page.DBSize, took, kept>>10, page.Scan)
			if limit := int64(test.want)*1000 + 32<<20; kept > limit { // other tests run, too
				t.Errorf("the page keeps %d bytes, more than %d", kept, limit)
			}
			if took > time.Minute {
				t.Errorf("the list took %v", took)
			}
			runtime.KeepAlive(page)
		})
	}
}

// allocated returns how many bytes of memory are in use.
func allocated() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// A list that ends early returns what it has found.
func TestAListThatEndsEarlyReturnsWhatItHasFound(t *testing.T) {
	t.Parallel()
	server := start(t)
	fillServer(t, server, 0, 20_000)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	page, err := newInspector(t, server.Client(t), inspect.WithPause(100*time.Millisecond)).Locks(ctx, inspect.Filter{})
	wantError(t, err, context.DeadlineExceeded)
	if len(page.Locks) == 0 || !page.Truncated || page.Scanned == 0 || page.Scanned == page.DBSize {
		t.Errorf("%d locks, %+v", len(page.Locks), page.Scan)
	}
}

// A cutHook calls cut after the first batch that reads locks.
type cutHook struct {
	redis.Hook
	cut func()
}

// DialHook returns next.
func (h *cutHook) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook returns next.
func (h *cutHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// ProcessPipelineHook calls cut.
func (h *cutHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		err := next(ctx, commands)
		if h.cut != nil && commands[0].Name() == "getrange" {
			h.cut()
			h.cut = nil
		}
		return err
	}
}

// A cursor is that of one server. So a list whose connection is lost, as in a failover, does not go on with
// another one, which may lead to another server: it would leave out keys.
func TestAListDoesNotGoOnWithAnotherServer(t *testing.T) {
	t.Parallel()
	server := start(t)
	fillServer(t, server, 3_000, 300)
	proxy := redistest.NewProxy(t, server.Addr())
	rdb := proxy.Client(t)
	rdb.AddHook(&cutHook{cut: proxy.Cut})
	i := newInspector(t, rdb, inspect.WithPause(1500*time.Millisecond)) // then the client looks whether an idle connection is closed
	page, err := i.Locks(t.Context(), inspect.Filter{})
	wantError(t, err, core.ErrUnavailable)
	if len(page.Locks) == 0 || !page.Truncated {
		t.Errorf("%d locks, %+v", len(page.Locks), page.Scan)
	}
}

// The keys of some masters are not all keys.
func TestDBSizeIsThatOfAllMastersOrUnknown(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	for _, node := range cluster.Nodes() {
		node.Grant(rights...)
	}
	rdb, admin := cluster.Client(t), redistest.AdminClient(t, cluster.Masters()[0].Addr())
	for _, key := range []string{"a", "b", "c", "d", "e", "f"} {
		if err := rdb.Set(t.Context(), "reqlock:"+key, "x", time.Hour).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := admin.Do(t.Context(), "ACL", "SETUSER", "default", "-dbsize").Err(); err != nil {
		t.Fatal(err)
	}
	if page, err := newInspector(t, rdb).Locks(t.Context(), inspect.Filter{}); err != nil || page.DBSize != 0 || page.Truncated {
		t.Errorf("%+v, %v", page.Scan, err)
	}
}
