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
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A dial connects a client of a process.
type dial = func(ctx context.Context, network, addr string) (net.Conn, error)

// An inProcessWorkload is a Workload in the process of the test. Each process is a Locker
// with its own clients. It checks mutual exclusion itself.
type inProcessWorkload struct {
	testing.TB
	// open sets the Locker of a process, and its clients.
	open func(p *inProcess)
	keys []string
	// onGrants is called each time grants were awaited.
	onGrants func()

	mu        sync.Mutex
	serial    int
	running   map[int]*inProcess
	deaths    int
	inside    map[string][]*core.Lease
	overlaps  int
	grants    map[string]int
	countFrom time.Time // calls from this time on are counted; zero: none
	calls     map[bool]int
}

// An inProcess is a process of an inProcessWorkload.
type inProcess struct {
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
	testWorkers, testCallers = 4, 4
	testTTL                  = time.Second
)

func startWorkers(t *testing.T, keys []string, connect func(testing.TB, dial) redis.UniversalClient, options ...core.Option) *inProcessWorkload {
	t.Helper()
	return newWorkload(t, keys, func(p *inProcess) {
		client := connect(t, p.dial)
		p.clients = append(p.clients, client)
		p.locks = core.Must(core.New(client, append(options, core.WithTTL(testTTL), core.WithWait(time.Second))...))
	})
}

// newWorkload starts processes.
func newWorkload(t *testing.T, keys []string, open func(p *inProcess)) *inProcessWorkload {
	t.Helper()
	w := &inProcessWorkload{
		TB: t, open: open, keys: keys, onGrants: func() {},
		running: map[int]*inProcess{}, inside: map[string][]*core.Lease{}, grants: map[string]int{},
	}
	for range testWorkers {
		w.add()
	}
	t.Cleanup(func() {
		for _, number := range w.Processes() {
			w.stop(number, true)
		}
	})
	return w
}

func (w *inProcessWorkload) add() {
	w.Helper()
	p := &inProcess{}
	p.ctx, p.end = context.WithCancel(context.Background())
	w.open(p)
	for range testCallers {
		p.group.Go(func() { w.work(p) })
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.serial++
	w.running[w.serial] = p
}

// work takes one lock after the other until the process ends.
func (w *inProcessWorkload) work(p *inProcess) {
	for p.ctx.Err() == nil {
		key := w.keys[rand.IntN(len(w.keys))]
		begun := time.Now()
		lease, err := p.locks.Lock(p.ctx, key)
		w.countCall(begun, err == nil)
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

// startCounting counts the results of calls that begin from now on.
func (w *inProcessWorkload) startCounting() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.countFrom, w.calls = time.Now(), map[bool]int{}
}

// granted and refused return the number of counted calls with that result.
func (w *inProcessWorkload) granted() int { return w.ended(true) }
func (w *inProcessWorkload) refused() int { return w.ended(false) }

func (w *inProcessWorkload) ended(granted bool) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calls[granted]
}

// countCall counts the result of a call.
func (w *inProcessWorkload) countCall(begun time.Time, granted bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	from := w.countFrom
	if granted {
		from = from.Add(testTTL) // an earlier lease may be handed off within a process
	}
	if !w.countFrom.IsZero() && begun.After(from) {
		w.calls[granted]++
	}
}

func (w *inProcessWorkload) enter(key string, lease *core.Lease) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.grants[key]++
	for _, other := range w.inside[key] {
		if isValid(other) && isValid(lease) {
			w.overlaps++
		}
	}
	w.inside[key] = append(w.inside[key], lease)
}

func (w *inProcessWorkload) leave(key string, lease *core.Lease) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inside[key] = slices.DeleteFunc(w.inside[key], func(l *core.Lease) bool { return l == lease })
}

func isValid(lease *core.Lease) bool {
	return lease.Context().Err() == nil && time.Now().Before(lease.ValidUntil())
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func (p *inProcess) dial(ctx context.Context, network, addr string) (net.Conn, error) {
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

// stop ends a process: without errors if clean is set, else like a crash, with open
// connections.
func (w *inProcessWorkload) stop(number int, clean bool) {
	w.mu.Lock()
	p := w.running[number]
	delete(w.running, number)
	w.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if !clean {
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

func (w *inProcessWorkload) Processes() []int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.running))
}

func (w *inProcessWorkload) Kill(process int) {
	w.stop(process, false)
	w.add()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deaths++
}

func (w *inProcessWorkload) Stop(int)     { w.Fatal("an in-process workload cannot be paused") }
func (w *inProcessWorkload) Continue(int) { w.Fatal("an in-process workload cannot be continued") }

func (w *inProcessWorkload) Grants() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, grants := range w.grants {
		n += grants
	}
	return n
}

func (w *inProcessWorkload) AwaitGrants(more int) {
	w.Helper()
	want := w.Grants() + more
	suite.Eventually(w, "grants", func() bool { return w.Grants() >= want })
	w.onGrants()
}

// awaitAll returns when each key was granted once more.
func (w *inProcessWorkload) awaitAll() {
	w.Helper()
	w.mu.Lock()
	before := maps.Clone(w.grants)
	w.mu.Unlock()
	suite.Eventually(w, "a grant of each key", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return !slices.ContainsFunc(w.keys, func(key string) bool { return w.grants[key] == before[key] })
	})
}
