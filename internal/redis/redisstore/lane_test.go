package redisstore

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

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// taken asks for so many keys at once, and returns the answers in that order.
type taken struct {
	answers []store.Answer
	errs    []error
	done    chan int
}

func takeMany(s *syncStore, n int, bound time.Duration, between time.Duration) *taken {
	many := &taken{make([]store.Answer, n), make([]error, n), make(chan int, n)}
	for i := range n {
		r := store.Request{Key: fmt.Sprint("many", i), Token: fmt.Sprintf("%s:%d", me, 100+i), TTL: ttl, Claim: claim, Bound: bound, Look: true}
		s.Store.Take(r, func(answer store.Answer, err error) {
			many.answers[i], many.errs[i] = answer, err
			many.done <- i
		})
		time.Sleep(between)
	}
	return many
}

func (m *taken) wait() {
	for range m.answers {
		<-m.done
	}
}

// holdUp holds the first command of that name back until let is called: what
// follows gathers behind it.
func holdUp(t *testing.T, proxy *redistest.Proxy, s *syncStore, name string) (let func()) {
	t.Helper()
	let, seen := proxy.HoldCommand(redistest.Named(name))
	s.Store.Take(request(me1), func(store.Answer, error) {})
	<-seen
	return let
}

// A test run with lanes of another width is one.
func TestTheWidthIsWhatWasLinked(t *testing.T) {
	want := os.Getenv("REQLOCK_LANE_WIDTH")
	if want == "" {
		want = "128"
	}
	for i, l := range newStore(t, redistest.Start(t).Client(t)).all() {
		if fmt.Sprint(l.width) != want {
			t.Errorf("lane %d is of width %d, want %s", i, l.width, want)
		}
	}
}

func TestCommandsThatComeTogetherLeaveTogether(t *testing.T) {
	s, proxy, _ := behindProxy(t)
	s.takes.width = 128
	batches := &countBatches{}
	s.takes.rdb.(*redis.Client).AddHook(batches)
	let := holdUp(t, proxy, s, "SET")
	many := takeMany(s, s.takes.width+72, 5*time.Second, 0)
	let()
	many.wait()
	for i := range many.answers {
		if many.errs[i] != nil || !many.answers[i].Granted {
			t.Errorf("%d: %+v, %v", i, many.answers[i], many.errs[i])
		}
	}
	if got := batches.sizes(); got != fmt.Sprint([]int{s.takes.width, 72}) {
		t.Errorf("batches of %v", got)
	}
}

// countBatches notes how many commands each pipeline has.
type countBatches struct {
	breaker
	seen []int
}

func (*countBatches) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (c *countBatches) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if cmds[0].Name() == "set" {
			c.seen = append(c.seen, len(cmds))
		}
		return next(ctx, cmds)
	}
}

func (c *countBatches) sizes() string { return fmt.Sprint(c.seen) }

// One bad command in a batch is nobody else's.
func TestABadCommandHarmsNoNeighbour(t *testing.T) {
	s, proxy, direct := behindProxy(t)
	if err := direct.RPush(t.Context(), "p:many1", "x").Err(); err != nil {
		t.Fatal(err)
	}
	if err := direct.Set(t.Context(), "p:many3", "another", time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	let := holdUp(t, proxy, s, "SET")
	many := takeMany(s, 5, 5*time.Second, 0)
	enqueued := make(chan error, 1)
	unknown := request(me2) // the server does not know the script yet
	unknown.Key = "other"
	s.Store.Enqueue(unknown, func(answer store.Answer, err error) {
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
		t.Errorf("the command whose script was not known: %v", err)
	}
}

// Where the server has no memory left, those of a batch who need none are served.
func TestAWantOfMemoryIsNobodyElses(t *testing.T) {
	s, proxy, direct := behindProxy(t)
	r := request(me2)
	r.Key = "ours"
	if _, err := s.Enqueue(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	let := holdUp(t, proxy, s, "SET")
	if err := direct.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	many := takeMany(s, 2, 5*time.Second, 0)
	confirmed := make(chan bool, 1)
	s.Store.Enqueue(r, func(answer store.Answer, err error) { confirmed <- err == nil && answer.Granted })
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

// A lane that is stuck does not hold up another one, and does not use up the
// connections that the other one needs.
//
//faults:row 29
func TestRenewalsAreNotStuckBehindTakes(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	s := newStore(t, proxy.Client(t, longReads, func(o *redis.Options) { o.PoolSize = 20 }))
	if _, err := s.Enqueue(t.Context(), request(me1)); err != nil {
		t.Fatal(err)
	}
	for range 600 {
		proxy.DropReply(redistest.Named("SET"), redistest.KeepConn)
	}
	many := takeMany(s, 100, longBound, 0)
	t.Cleanup(func() {
		giveUp(s)
		proxy.Cut()
		many.wait()
	})
	sendAgain(s) // and their second sends are stuck, too
	for range 3 {
		r, renewed := request(me1), make(chan error, 1)
		r.Bound = longBound // a lane that is shared would leave the takes behind at half of it
		s.Store.Renew(r, func(renewal store.Renewal, err error) {
			if err == nil && !renewal.Held {
				err = errors.New("not held")
			}
			renewed <- err
		})
		if err := receive(t, "a renewal", renewed); err != nil {
			t.Errorf("renew: %v", err)
		}
	}
	if n := len(many.done); n > 0 {
		t.Errorf("%d takes are not stuck", n)
	}
}

// However many commands wait for a server that is silent, they do not open a
// connection each.
func TestASilentServerIsNotStormed(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	var dials atomic.Int64
	rdb := proxy.Client(t, shortReads, func(o *redis.Options) {
		o.PoolSize = 1000 // or it is the pool that hinders a storm
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials.Add(1)
			return new(net.Dialer).DialContext(ctx, network, addr)
		}
	})
	s := newStore(t, rdb)
	proxy.Partition()
	many := takeMany(s, 200, 500*time.Millisecond, time.Millisecond)
	many.wait()
	for i, err := range many.errs {
		if !errors.Is(err, errNoReply) && !isTransport(err) {
			t.Errorf("%d: %v", i, err)
		}
	}
	if n := dials.Load(); n > 100 { // it is some ten, and more where a busy machine takes longer
		t.Errorf("%d connections for 200 commands", n)
	}
}

// waitingOnly is told nothing.
type waitingOnly struct{ *exchange }

func (waitingOnly) settle(reply, bool) {}
func (waitingOnly) late(reply)         {}
func (waitingOnly) free()              {}

// A command that was given up while it stood behind a stuck batch is not sent
// any more.
func TestWhatWasGivenUpIsNotSent(t *testing.T) {
	l := &lane{width: 128}
	x, y := &exchange{}, &exchange{}
	for _, waiting := range []*exchange{x, y} {
		waiting.begin(&Store{}, waitingOnly{waiting}, &store.Request{Bound: time.Second})
		waiting.sayTake(&waiting.request)
		l.queue = append(l.queue, waiting.send())
	}
	x.end(reply{err: errNoReply})
	b := &batch{}
	if !l.load(b, time.Now()) || len(b.sends) != 1 || b.sends[0].of != &y.call || len(l.queue) != 0 {
		t.Errorf("sends %v, %d left", b.sends, len(l.queue))
	}
}

// Close waits for all that was begun, and nothing is lost by it.
func TestCloseWithAFullQueue(t *testing.T) {
	s, proxy, _ := behindProxy(t)
	let := holdUp(t, proxy, s, "SET")
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
			t.Fatal("closed before all was answered")
		}
	}
}

// A lease counts from the sending of the command that granted it, and not from
// its reply.
//
//faults:row 6
func TestALeaseCountsFromTheSending(t *testing.T) {
	kept := request(me1)
	kept.Rejoin = me2
	for name, do := range map[string]func(*syncStore) (time.Time, error){
		"take": func(s *syncStore) (time.Time, error) {
			got, err := s.Take(t.Context(), request(me1))
			return got.Since, err
		},
		"enqueue": func(s *syncStore) (time.Time, error) {
			got, err := s.Enqueue(t.Context(), request(me1))
			return got.Since, err
		},
		"begin": func(s *syncStore) (time.Time, error) {
			got, err := s.Enqueue(t.Context(), attempt(me1))
			return got.Since, err
		},
		"renew": func(s *syncStore) (time.Time, error) {
			got, err := s.Renew(t.Context(), request(me1))
			return got.Since, err
		},
		"kept": func(s *syncStore) (time.Time, error) {
			got, err := s.Release(t.Context(), kept)
			return got.Since, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, proxy, direct := behindProxy(t)
			warm := request(bob1) // so that the server knows the scripts
			warm.Key = "warm"
			_, _ = s.Enqueue(t.Context(), warm)
			_, _ = s.Renew(t.Context(), warm)
			_, _ = s.Release(t.Context(), warm)
			warm.Attempt = attempt(bob1).Attempt
			_, _ = s.Enqueue(t.Context(), warm)
			if name != "take" {
				state{value: me1, ttl: ttl}.put(t, direct)
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
