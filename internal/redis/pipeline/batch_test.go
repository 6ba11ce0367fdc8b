package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// takeResults are the results of concurrent takes, in the order of their keys.
type takeResults struct {
	answers []store.Answer
	errs    []error
	done    chan int // the index of each answered take
}

// takeKeys takes the keys "key0" to "key<n-1>", with a pause after each. It waits for no
// answer.
func takeKeys(s *syncStore, n int, bound, pause time.Duration) *takeResults {
	takes := &takeResults{make([]store.Answer, n), make([]error, n), make(chan int, n)}
	for i := range n {
		r := storetest.AnyRequest{Key: fmt.Sprint("key", i), Token: fmt.Sprintf("%s:%d", storetest.Me, 100+i), TTL: storetest.TTL, Claim: storetest.Claim, Bound: bound, WithHolder: true}
		s.testStore.Take(r, func(answer store.Answer, err error) {
			takes.answers[i], takes.errs[i] = answer, err
			takes.done <- i
		})
		time.Sleep(pause)
	}
	return takes
}

// wait waits for all answers.
func (r *takeResults) wait(t *testing.T) {
	t.Helper()
	for range r.answers {
		suite.Receive(t, "each take is answered", r.done)
	}
}

// holdTake takes the key "k". The proxy holds the command until the test calls release.
// Meanwhile later calls form the next batch.
func holdTake(t *testing.T, proxy *redistest.Proxy, s *syncStore) (release func()) {
	t.Helper()
	release, held := proxy.HoldCommand(redistest.Named("SET"))
	s.testStore.Take(storetest.Request(storetest.Me1), func(store.Answer, error) {})
	suite.AwaitClosed(t, "the take is held", held)
	return release
}

func TestWaitingCommandsAreSentAsBatches(t *testing.T) {
	t.Parallel()
	for width, want := range map[int][]int{1: nil, 7: append(slices.Repeat([]int{7}, 28), 4), Width: {128, 72}} {
		t.Run(fmt.Sprint("width ", width), func(t *testing.T) {
			t.Parallel()
			rdb, proxy, _ := storetest.BehindProxy(t)
			s, batches := newStoreOfWidth(t, rdb, width), &batchSizes{}
			rdb.AddHook(batches)
			release := holdTake(t, proxy, s)
			takes := takeKeys(s, 200, 5*time.Second, 0)
			release()
			takes.wait(t)
			for i := range takes.answers {
				if takes.errs[i] != nil || !takes.answers[i].Granted {
					t.Errorf("%d: %+v, %v", i, takes.answers[i], takes.errs[i])
				}
			}
			if !slices.Equal(batches.seen, want) { // a command alone is no batch of the client
				t.Errorf("batches of %v commands, want %v", batches.seen, want)
			}
		})
	}
}

// batchSizes is a hook that records how many commands each pipeline has.
type batchSizes struct {
	storetest.OpenCircuit
	seen []int
}

func (*batchSizes) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (b *batchSizes) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if cmds[0].Name() == "set" {
			b.seen = append(b.seen, len(cmds))
		}
		return next(ctx, cmds)
	}
}

// A bad command in a batch does not fail the other commands.
func TestBadCommandFailsAlone(t *testing.T) {
	t.Parallel()
	s, proxy, direct := behindProxy(t)
	if err := direct.RPush(t.Context(), "p:key1", "x").Err(); err != nil {
		t.Fatal(err)
	}
	if err := direct.Set(t.Context(), "p:key3", "other", time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	release := holdTake(t, proxy, s)
	takes := takeKeys(s, 5, 5*time.Second, 0)
	enqueued := make(chan error, 1)
	unloaded := storetest.Request(storetest.Me2) // the server has not loaded the script
	unloaded.Key = "other"
	s.testStore.Enqueue(unloaded, func(answer store.Answer, err error) {
		if err == nil && !answer.Granted {
			err = errors.New("not granted")
		}
		enqueued <- err
	})
	release()
	takes.wait(t)
	for i, want := range []string{"granted", "WRONGTYPE", "granted", "held by other", "granted"} {
		got := "granted"
		switch err := takes.errs[i]; {
		case err != nil:
			got, _, _ = strings.Cut(err.Error(), " ")
		case !takes.answers[i].Granted:
			got = "held by " + takes.answers[i].Holder
		}
		if got != want {
			t.Errorf("%d: %s, want %s", i, got, want)
		}
	}
	if err := suite.Receive(t, "the command with a script is answered", enqueued); err != nil {
		t.Errorf("the command with a script that the server had not loaded: %v", err)
	}
}

// If the server is out of memory, the commands of a batch that need no memory succeed.
func TestOutOfMemoryFailsOnlyWrites(t *testing.T) {
	t.Parallel()
	s, proxy, direct := behindProxy(t)
	r := storetest.Request(storetest.Me2)
	r.Key = "held"
	if _, err := s.Enqueue(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	release := holdTake(t, proxy, s)
	if err := direct.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	takes := takeKeys(s, 2, 5*time.Second, 0)
	confirmed := make(chan bool, 1)
	s.testStore.Enqueue(r, func(answer store.Answer, err error) { confirmed <- err == nil && answer.Granted })
	release()
	takes.wait(t)
	for i, err := range takes.errs {
		if err == nil || !strings.HasPrefix(err.Error(), "OOM") {
			t.Errorf("%d: %+v, %v", i, takes.answers[i], err)
		}
	}
	if !suite.Receive(t, "the lock is confirmed", confirmed) {
		t.Error("the server did not confirm a lock that the token already holds")
	}
}

// A call that expires behind a batch without replies is not sent.
func TestExpiredCallIsNotSent(t *testing.T) {
	t.Parallel()
	l := &lane{width: Width}
	var calls []*Call
	for range 2 {
		o := newOperation(&testStore{}, &storetest.AnyRequest{Bound: time.Second}, func(store.Answer, error) {}, decodeTake)
		o.args = []any{"set", "k", "token", "nx", "get"}
		calls = append(calls, &o.Call)
		l.enqueue(o.send())
	}
	expired, waiting := calls[0], calls[1]
	expired.settle(Reply{Err: command.ErrNoReply})
	b := &batch{}
	if !l.load(b, time.Now()) || len(b.sends) != 1 || b.sends[0].call != waiting || len(l.queue) != 0 {
		t.Errorf("sends %v, %d left", b.sends, len(l.queue))
	}
}

// The size of a batch of commits is limited, so that the replies arrive before the deadlines.
func TestBatchOfRecordsIsLimited(t *testing.T) {
	t.Parallel()
	s, proxy, _ := behindProxy(t)
	release, held := proxy.HoldCommand(onLock("p:first"))
	t.Cleanup(release)
	answered := make(chan error, 10)
	commit := func(key string, record []byte) {
		r := storetest.AttemptRequest(storetest.Me1)
		r.Key, r.Ending, r.Record = key, store.Commit, record
		s.testStore.Release(r, func(_ store.ReleaseResult, err error) { answered <- err })
	}
	commit("first", nil)
	suite.AwaitClosed(t, "the first commit is held", held)
	for _, key := range []string{"a", "b", "c", "d", "e"} {
		commit(key, make([]byte, batchBytes/2))
	}
	l := &s.pipeline.commits
	l.mu.Lock()
	b := &batch{}
	l.fill(b)
	waiting := l.queue[l.taken:]
	n, left := len(b.sends), len(waiting)
	l.queue, l.taken = slices.Concat(b.sends, waiting), 0
	l.mu.Unlock()
	if n != 2 || left != 3 {
		t.Errorf("%d commits in the batch and %d in the queue, want 2 and 3", n, left)
	}
	release()
	for range 6 {
		if err := suite.Receive(t, "each commit is answered", answered); err != nil {
			t.Error(err)
		}
	}
}

// onLock matches a script that runs on the lock.
func onLock(lock string) func(command []string) bool {
	return func(command []string) bool { return len(command) > 3 && command[3] == lock }
}
