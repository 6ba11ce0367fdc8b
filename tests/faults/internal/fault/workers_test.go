package fault

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
)

// A dial is how a worker dials.
type dial = func(ctx context.Context, network, addr string) (net.Conn, error)

// Workers stand in for a crew of processes. They are Lockers with clients of their
// own, and look for themselves whether anybody is inside together with another.
type workers struct {
	testing.TB
	// open gives a worker its Locker, and what it connects with.
	open func(p *worker)
	keys []string
	// during is called while grants are awaited, when there were as many.
	during func()

	mu       sync.Mutex
	serial   int
	running  map[int]*worker
	deaths   int
	inside   map[string][]*core.Lease
	overlaps int
	grants   map[string]int
	watched  time.Time // from when on calls are told apart by how they ended; zero: not
	heard    map[bool]int
}

// A worker is one of them.
type worker struct {
	clients []redis.UniversalClient
	locks   *core.Locker
	ctx     context.Context
	end     context.CancelFunc
	group   sync.WaitGroup

	mu    sync.Mutex
	dead  bool
	conns []net.Conn
}

const (
	workersOfATest, callersOfAWorker = 4, 4
	leaseOfATest                     = time.Second
)

func startWorkers(t *testing.T, keys []string, connect func(testing.TB, dial) redis.UniversalClient, options ...core.Option) *workers {
	t.Helper()
	return openWorkers(t, keys, func(p *worker) {
		client := connect(t, p.dial)
		p.clients = append(p.clients, client)
		p.locks = core.Must(core.New(client, append(options, core.WithTTL(leaseOfATest), core.WithWait(time.Second))...))
	})
}

// openWorkers starts workers whose Lockers open gives them.
func openWorkers(t *testing.T, keys []string, open func(p *worker)) *workers {
	t.Helper()
	w := &workers{
		TB: t, open: open, keys: keys, during: func() {},
		running: map[int]*worker{}, inside: map[string][]*core.Lease{}, grants: map[string]int{},
	}
	for range workersOfATest {
		w.add()
	}
	t.Cleanup(func() {
		for _, number := range w.Processes() {
			w.stop(number, true)
		}
	})
	return w
}

func (w *workers) add() {
	w.Helper()
	p := &worker{}
	p.ctx, p.end = context.WithCancel(context.Background())
	w.open(p)
	for range callersOfAWorker {
		p.group.Go(func() { w.work(p) })
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.serial++
	w.running[w.serial] = p
}

// work takes one lock after the other until the worker ends.
func (w *workers) work(p *worker) {
	for p.ctx.Err() == nil {
		key := w.keys[rand.IntN(len(w.keys))]
		begun := time.Now()
		lease, err := p.locks.Lock(p.ctx, key)
		w.hear(begun, err == nil)
		if err != nil {
			pause(p.ctx, 10*time.Millisecond)
			continue
		}
		w.enter(key, lease)
		pause(lease.Context(), time.Duration(rand.IntN(int(5*time.Millisecond))))
		w.leave(key, lease)
		_ = lease.Release(p.ctx)
	}
}

// watch begins to count how calls end that are made from now on.
func (w *workers) watch() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watched, w.heard = time.Now(), map[bool]int{}
}

// served and unserved are how many of these calls were granted, and how many not.
func (w *workers) served() int   { return w.ended(true) }
func (w *workers) unserved() int { return w.ended(false) }

func (w *workers) ended(granted bool) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.heard[granted]
}

// hear takes in how a call has ended.
func (w *workers) hear(begun time.Time, granted bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	from := w.watched
	if granted {
		from = from.Add(leaseOfATest) // what was granted before may be passed on within a process
	}
	if !w.watched.IsZero() && begun.After(from) {
		w.heard[granted]++
	}
}

func (w *workers) enter(key string, lease *core.Lease) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.grants[key]++
	for _, other := range w.inside[key] {
		if believed(other) && believed(lease) {
			w.overlaps++
		}
	}
	w.inside[key] = append(w.inside[key], lease)
}

func (w *workers) leave(key string, lease *core.Lease) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inside[key] = slices.DeleteFunc(w.inside[key], func(l *core.Lease) bool { return l == lease })
}

func believed(lease *core.Lease) bool {
	return lease.Context().Err() == nil && time.Now().Before(lease.ValidUntil())
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func (p *worker) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return nil, errors.Join(errors.New("the process is dead"), conn.Close())
	}
	p.conns = append(p.conns, conn)
	return conn, nil
}

// stop ends a worker, in peace or as a crash does: in the midst of whatever it says.
func (w *workers) stop(number int, peace bool) {
	w.mu.Lock()
	p := w.running[number]
	delete(w.running, number)
	w.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if !peace {
		cancel()
		p.mu.Lock()
		p.dead = true
		for _, conn := range p.conns {
			_ = conn.Close()
		}
		p.mu.Unlock()
	}
	p.end()
	_ = p.locks.Close(ctx)
	p.group.Wait()
	for _, client := range p.clients {
		_ = client.Close()
	}
}

func (w *workers) Processes() []int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.running))
}

func (w *workers) Kill(process int) {
	w.stop(process, false)
	w.add()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deaths++
}

func (w *workers) Stop(int)     { w.Fatal("a stand-in cannot be made to stand still") }
func (w *workers) Continue(int) { w.Fatal("a stand-in cannot be made to go on") }

func (w *workers) Grants() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, grants := range w.grants {
		n += grants
	}
	return n
}

func (w *workers) AwaitGrants(more int) {
	w.Helper()
	want := w.Grants() + more
	w.await("grants", func() bool { return w.Grants() >= want })
	w.during()
}

// awaitAll returns when each key was granted once more.
func (w *workers) awaitAll() {
	w.Helper()
	w.mu.Lock()
	before := maps.Clone(w.grants)
	w.mu.Unlock()
	w.await("a grant of each key", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return !slices.ContainsFunc(w.keys, func(key string) bool { return w.grants[key] == before[key] })
	})
}

func (w *workers) await(what string, condition func() bool) {
	w.Helper()
	for deadline := time.Now().Add(patience); !condition(); {
		if time.Now().After(deadline) {
			w.Fatalf("still not so: %s", what)
		}
		pause(w.Context(), time.Millisecond)
	}
}
