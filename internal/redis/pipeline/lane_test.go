package pipeline

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// A takeBatch is the answers of takeMany, in the order of the keys.
type takeBatch struct {
	answers []store.Answer
	errs    []error
	done    chan int
}

func takeMany(s *syncStore, n int, bound time.Duration, between time.Duration) *takeBatch {
	many := &takeBatch{make([]store.Answer, n), make([]error, n), make(chan int, n)}
	for i := range n {
		r := storetest.AnyRequest{Key: fmt.Sprint("many", i), Token: fmt.Sprintf("%s:%d", storetest.Me, 100+i), TTL: storetest.TTL, Claim: storetest.Claim, Bound: bound, WithHolder: true}
		s.testStore.Take(r, func(answer store.Answer, err error) {
			many.answers[i], many.errs[i] = answer, err
			many.done <- i
		})
		time.Sleep(between)
	}
	return many
}

func (m *takeBatch) wait() {
	for range m.answers {
		<-m.done
	}
}

// holdFirst holds the first command of that name until let is called. Later calls form a
// batch behind it.
func holdFirst(t *testing.T, proxy *redistest.Proxy, s *syncStore, name string) (let func()) {
	t.Helper()
	let, seen := proxy.HoldCommand(redistest.Named(name))
	s.testStore.Take(storetest.Request(storetest.Me1), func(store.Answer, error) {})
	<-seen
	return let
}

// CI links the tests with other widths, and sets the variable.
func TestWidthIsTheLinkedOne(t *testing.T) {
	t.Parallel()
	want := os.Getenv("REQLOCK_LANE_WIDTH")
	if want == "" {
		want = "128"
	}
	for i, l := range newStore(t, redistest.Start(t).Client(t)).pipeline.all() {
		if fmt.Sprint(l.width) != want {
			t.Errorf("lane %d is of width %d, want %s", i, l.width, want)
		}
	}
}

func TestWaitingCommandsLeaveAsOneBatch(t *testing.T) {
	t.Parallel()
	s, proxy, _ := behindProxy(t)
	s.pipeline.acquires.width = 128
	batches := &batchSizes{}
	s.pipeline.acquires.rdb.(*redis.Client).AddHook(batches)
	let := holdFirst(t, proxy, s, "SET")
	many := takeMany(s, s.pipeline.acquires.width+72, 5*time.Second, 0)
	let()
	many.wait()
	for i := range many.answers {
		if many.errs[i] != nil || !many.answers[i].Granted {
			t.Errorf("%d: %+v, %v", i, many.answers[i], many.errs[i])
		}
	}
	if got := batches.sizes(); got != fmt.Sprint([]int{s.pipeline.acquires.width, 72}) {
		t.Errorf("batches of %v", got)
	}
}

// batchSizes is a hook that records how many commands each pipeline has.
type batchSizes struct {
	storetest.OpenCircuit
	seen []int
}

func (*batchSizes) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (c *batchSizes) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if cmds[0].Name() == "set" {
			c.seen = append(c.seen, len(cmds))
		}
		return next(ctx, cmds)
	}
}

func (c *batchSizes) sizes() string { return fmt.Sprint(c.seen) }

// A bad command in a batch does not fail the other commands.
func TestBadCommandFailsAlone(t *testing.T) {
	t.Parallel()
	s, proxy, direct := behindProxy(t)
	if err := direct.RPush(t.Context(), "p:many1", "x").Err(); err != nil {
		t.Fatal(err)
	}
	if err := direct.Set(t.Context(), "p:many3", "another", time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	let := holdFirst(t, proxy, s, "SET")
	many := takeMany(s, 5, 5*time.Second, 0)
	enqueued := make(chan error, 1)
	unknown := storetest.Request(storetest.Me2) // the server does not know the script yet
	unknown.Key = "other"
	s.testStore.Enqueue(unknown, func(answer store.Answer, err error) {
		if err == nil && !answer.Granted {
			err = errors.New("not granted")
		}
		enqueued <- err
	})
	let()
	many.wait()
	for i, want := range []string{"granted", "WRONGTYPE", "granted", "held by another", "granted"} {
		got := "granted"
		switch err := many.errs[i]; {
		case err != nil:
			got, _, _ = strings.Cut(err.Error(), " ")
		case !many.answers[i].Granted:
			got = "held by " + many.answers[i].Holder
		}
		if got != want {
			t.Errorf("%d: %s, want %s", i, got, want)
		}
	}
	if err := <-enqueued; err != nil {
		t.Errorf("the command with a script that the server had not loaded: %v", err)
	}
}

// If the server is out of memory, the commands of a batch that need none succeed.
func TestOutOfMemoryFailsOnlyWrites(t *testing.T) {
	t.Parallel()
	s, proxy, direct := behindProxy(t)
	r := storetest.Request(storetest.Me2)
	r.Key = "ours"
	if _, err := s.Enqueue(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	let := holdFirst(t, proxy, s, "SET")
	if err := direct.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	many := takeMany(s, 2, 5*time.Second, 0)
	confirmed := make(chan bool, 1)
	s.testStore.Enqueue(r, func(answer store.Answer, err error) { confirmed <- err == nil && answer.Granted })
	let()
	many.wait()
	for i, err := range many.errs {
		if err == nil || !strings.HasPrefix(err.Error(), "OOM") {
			t.Errorf("%d: %+v, %v", i, many.answers[i], err)
		}
	}
	if !<-confirmed {
		t.Error("the grant that only had to be confirmed was not")
	}
}

// A lane without replies does not delay another one, and does not use the connections that
// the other one needs.
//
//faults:row 29
func TestRenewalsDoNotWaitForTakes(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	s := newStore(t, proxy.Client(t, storetest.LongReads, func(o *redis.Options) { o.PoolSize = 20 }))
	if _, err := s.Enqueue(t.Context(), storetest.Request(storetest.Me1)); err != nil {
		t.Fatal(err)
	}
	for range 600 {
		proxy.DropReply(redistest.Named("SET"), redistest.KeepConn)
	}
	many := takeMany(s, 100, storetest.LongBound, 0)
	t.Cleanup(func() {
		expireNow(s)
		proxy.Cut()
		many.wait()
	})
	resendNow(s) // and their second sends are stuck, too
	for range 3 {
		r, renewed := storetest.Request(storetest.Me1), make(chan error, 1)
		r.Bound = storetest.LongBound // a lane that is shared would leave the takes behind at half of it
		s.testStore.Renew(r, func(renewal store.Renewal, err error) {
			if err == nil && !renewal.Held {
				err = errors.New("not held")
			}
			renewed <- err
		})
		if err := storetest.Receive(t, "a renewal", renewed); err != nil {
			t.Errorf("renew: %v", err)
		}
	}
	if n := len(many.done); n > 0 {
		t.Errorf("%d takes are not stuck", n)
	}
}

// Commands that wait for a silent server do not open a connection each.
func TestSilentServerGetsFewConnections(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	var dials atomic.Int64
	rdb := proxy.Client(t, storetest.ShortReads, func(o *redis.Options) {
		o.PoolSize = 1000 // or it is the pool that hinders a storm
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials.Add(1)
			return new(net.Dialer).DialContext(ctx, network, addr)
		}
	})
	s := newStore(t, rdb)
	t.Cleanup(proxy.HealDropped) // Close waits for the batches in flight
	proxy.Partition()
	many := takeMany(s, 200, 500*time.Millisecond, time.Millisecond)
	many.wait()
	for i, err := range many.errs {
		if !errors.Is(err, command.ErrNoReply) && !command.IsTransport(err) {
			t.Errorf("%d: %v", i, err)
		}
	}
	if n := dials.Load(); n > 100 { // it is some ten, and more where a busy machine takes longer
		t.Errorf("%d connections for 200 commands", n)
	}
}

// A call that expires behind a batch without replies is not sent.
func TestExpiredCallIsNotSent(t *testing.T) {
	t.Parallel()
	l := &lane{width: 128}
	var calls []*Call
	for range 2 {
		o := newOperation(&testStore{}, &storetest.AnyRequest{Bound: time.Second}, func(store.Answer, error) {}, decodeTake)
		o.args = []any{"set", "k", "token", "nx", "get"}
		calls = append(calls, &o.Call)
		l.queue = append(l.queue, o.send())
	}
	x, y := calls[0], calls[1]
	x.settle(Reply{Err: command.ErrNoReply})
	b := &batch{}
	if !l.load(b, time.Now()) || len(b.sends) != 1 || b.sends[0].call != y || len(l.queue) != 0 {
		t.Errorf("sends %v, %d left", b.sends, len(l.queue))
	}
}

// Close waits until all calls are answered.
func TestCloseWaitsForQueuedCalls(t *testing.T) {
	t.Parallel()
	s, proxy, _ := behindProxy(t)
	let := holdFirst(t, proxy, s, "SET")
	many := takeMany(s, 300, 5*time.Second, 0)
	closed := make(chan error)
	go func() { closed <- s.Close(context.Background()) }()
	let()
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	for range many.answers {
		select {
		case i := <-many.done:
			if many.errs[i] != nil {
				t.Errorf("%d: %v", i, many.errs[i])
			}
		default:
			t.Fatal("closed before all calls were answered")
		}
	}
}

// Reply.Sent is a time before the command is sent.
//
//faults:row 6
func TestReplyCarriesTimeOfSend(t *testing.T) {
	t.Parallel()
	kept := storetest.Request(storetest.Me1)
	kept.Rejoin = storetest.Me2
	for name, do := range map[string]func(*syncStore) (time.Time, error){
		"take": func(s *syncStore) (time.Time, error) {
			got, err := s.Take(t.Context(), storetest.Request(storetest.Me1))
			return got.Since, err
		},
		"enqueue": func(s *syncStore) (time.Time, error) {
			got, err := s.Enqueue(t.Context(), storetest.Request(storetest.Me1))
			return got.Since, err
		},
		"begin": func(s *syncStore) (time.Time, error) {
			got, err := s.Enqueue(t.Context(), storetest.AttemptRequest(storetest.Me1))
			return got.Since, err
		},
		"renew": func(s *syncStore) (time.Time, error) {
			got, err := s.Renew(t.Context(), storetest.Request(storetest.Me1))
			return got.Since, err
		},
		"kept": func(s *syncStore) (time.Time, error) {
			got, err := s.Release(t.Context(), kept)
			return got.Since, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, proxy, direct := behindProxy(t)
			warm := storetest.Request(storetest.Bob1) // so that the server knows the scripts
			warm.Key = "warm"
			_, _ = s.Enqueue(t.Context(), warm)
			_, _ = s.Renew(t.Context(), warm)
			_, _ = s.Release(t.Context(), warm)
			warm.Attempt = storetest.AttemptRequest(storetest.Bob1).Attempt
			_, _ = s.Enqueue(t.Context(), warm)
			if name != "take" {
				storetest.State{Value: storetest.Me1, TTL: storetest.TTL}.Put(t, direct)
			}
			let, seen := proxy.HoldCommand(redistest.Named("SET", "EVALSHA"))
			on := make(chan time.Time, 1) // its way
			go func() {
				<-seen
				on <- time.Now()
				let()
			}()
			asked := time.Now()
			since, err := do(s)
			if err != nil {
				t.Fatal(err)
			}
			if sent := <-on; since.Before(asked) || since.After(sent) {
				t.Errorf("the lease counts from %v after it was asked for, and it was sent after %v", since.Sub(asked), sent.Sub(asked))
			}
		})
	}
}

// A batch of commits has a limited size, so that its replies arrive within their bounds.
func TestBatchOfRecordsIsLimited(t *testing.T) {
	t.Parallel()
	s, proxy, _ := behindProxy(t)
	let, held := proxy.HoldCommand(onLock("p:first"))
	t.Cleanup(let)
	over := make(chan error, 10)
	commit := func(key string, record []byte) {
		r := storetest.AttemptRequest(storetest.Me1)
		r.Key, r.Ending, r.Record = key, store.Commit, record
		s.testStore.Release(r, func(_ store.ReleaseResult, err error) { over <- err })
	}
	commit("first", nil)
	<-held
	for _, key := range []string{"a", "b", "c", "d", "e"} {
		commit(key, make([]byte, batchBytes/2))
	}
	l := &s.pipeline.commits
	l.mu.Lock()
	b := &batch{}
	l.fill(b)
	n, left := len(b.sends), len(l.queue)
	l.queue = append(b.sends, l.queue...) // back where they were
	l.mu.Unlock()
	if want := min(2, l.width); n != want || left != 5-want {
		t.Errorf("%d together, %d left", n, left)
	}
	let()
	for range 6 {
		if err := <-over; err != nil {
			t.Error(err)
		}
	}
}

// onLock matches the scripts that run on this lock.
func onLock(lock string) func(command []string) bool {
	return func(command []string) bool { return len(command) > 3 && command[3] == lock }
}

// A lane at rest and a cleared call keep no command and no reply: they may be big.
func TestIdleLaneHoldsNothing(t *testing.T) {
	t.Parallel()
	s := newStore(t, redistest.Start(t).Client(t))
	for range 3 {
		if _, err := s.Take(t.Context(), storetest.Request(storetest.Me1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, l := range s.pipeline.all() {
		if b := l.spare; b != nil && (len(b.sends)+len(b.cmds)+len(b.completions) > 0) {
			t.Errorf("a lane at rest holds %d sends", len(b.sends))
		}
	}
	x := &Call{}
	x.firstSend = send{call: x, command: command.New(1, []any{"get", "k"}), reply: Reply{Value: "big"}}
	x.Clear()
	if x.firstSend != (send{}) {
		t.Errorf("a cleared call holds %+v", x.firstSend)
	}
}

// A caller does not run a batch itself that waits for replicas.
func TestReplicaLanesNeverRunInline(t *testing.T) {
	t.Parallel()
	s := &testStore{}
	p := New(redistest.Start(t).Client(t, storetest.Deadlines), &s.work, command.Replicas{Count: 1, Timeout: time.Second})
	for class, want := range map[Class]bool{Acquire: false, Renew: false, Begin: false, Commit: false, Release: true, Abort: true} {
		if l := p.of(class, true); l.canRunInline != want || l.acknowledged == want {
			t.Errorf("class %d: may run inline: %v, waits for replicas: %v", class, l.canRunInline, l.acknowledged)
		}
	}
}
