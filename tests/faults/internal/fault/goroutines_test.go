package fault

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/faults/internal/network"
)

// A goroutineWorkload is a Workload of goroutines. Each process is a client and a Locker. A
// killed process loses its connections. Pauses are only recorded.
type goroutineWorkload struct {
	*testing.T
	servers []string
	network *network.Network
	keys    []string
	ttl     time.Duration
	callers int  // in each process
	shared  bool // callers take permits

	grants  atomic.Int64
	running sync.WaitGroup

	mu        sync.Mutex
	next      int
	processes map[int]context.CancelFunc
	calls     []string         // Kill, Stop and Continue
	errors    map[string]int   // the number of failed commands, by error text
	slowest   time.Duration    // the duration of the slowest command
	tornReads int              // reads that ended within a line
	fences    map[string]int64 // the last fencing number of each key
	lowFences []string         // fencing numbers that did not rise
}

// workTime is how long a caller holds a lock, and how long it waits before it takes the next
// one. Callers that never wait would need all CPU of the machine.
const workTime = 4 * time.Millisecond

// Callers that take permits take one of somePermits, and hold each one of longTurns for half of
// its TTL.
const somePermits, longTurns = 3, 5

// commandTimeout is the command timeout of the Lockers.
const commandTimeout = 100 * time.Millisecond

func newGoroutineWorkload(t *testing.T, n *network.Network, f Fault, ttl time.Duration, keys []string, servers ...string) *goroutineWorkload {
	t.Helper()
	b := &goroutineWorkload{
		T: t, servers: servers, network: n, keys: keys, ttl: ttl, shared: f.SharedOnly,
		processes: map[int]context.CancelFunc{}, errors: map[string]int{}, fences: map[string]int64{},
	}
	processes := 3
	b.callers = 4
	if f.OneProcess {
		processes, b.callers = 1, 24
	}
	for range processes {
		b.startProcess()
	}
	t.Cleanup(b.end)
	return b
}

// end ends all processes, and waits for them.
func (b *goroutineWorkload) end() {
	b.mu.Lock()
	for _, end := range b.processes {
		end()
	}
	b.mu.Unlock()
	b.running.Wait()
}

func (b *goroutineWorkload) startProcess() {
	b.mu.Lock()
	b.next++
	process := b.next
	ctx, cancel := context.WithCancel(context.Background())
	b.processes[process] = cancel
	b.mu.Unlock()
	rdb := b.client(process)
	locks := core.Must(core.New(rdb, core.WithTTL(b.ttl), core.WithCommandTimeout(commandTimeout)))
	var working sync.WaitGroup
	own := "reqlock:" + strconv.Itoa(process) // no other caller uses it
	for i := range b.callers {
		working.Go(func() { b.work(ctx, locks, i, own) })
	}
	b.running.Go(func() {
		working.Wait()
		over, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = locks.Close(over)
		_ = rdb.Close()
	})
}

// client returns the client of a process, on the path of the process.
func (b *goroutineWorkload) client(process int) *redis.Client {
	routes := b.network.Path(process).Routes
	rdb := redis.NewClient(&redis.Options{
		Addr: b.servers[0], ContextTimeoutEnabled: true,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			var dialer net.Dialer
			conn, err := dialer.DialContext(ctx, network, routes[addr])
			if err != nil {
				b.recordError(0, err)
				return nil, err
			}
			return &recordingConn{conn, b}, nil
		},
	})
	rdb.AddHook(recordingHook{b})
	return rdb
}

// work takes locks until ctx ends. The first caller takes only a lock of its own.
func (b *goroutineWorkload) work(ctx context.Context, locks *core.Locker, i int, own string) {
	for turn := i; ctx.Err() == nil; turn++ {
		key := b.keys[turn%len(b.keys)]
		if i == 0 {
			key = own
		}
		// Without fencing, SET takes a free lock.
		fenced, work := i > 0 && !b.shared, workTime
		view := locks.With(core.WithWait(time.Duration(i)*50*time.Millisecond), core.WithFencing(fenced))
		if i > 0 && b.shared {
			view = view.With(core.WithPermits(somePermits))
			if turn%longTurns == 0 {
				work = b.ttl / 2
			}
		}
		lease, err := view.Lock(ctx, strings.TrimPrefix(key, "reqlock:"))
		if err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(time.Millisecond):
			}
			continue
		}
		b.granted(key, lease, fenced)
		time.Sleep(work)
		_ = lease.Release(ctx)
		time.Sleep(workTime)
	}
}

// granted counts a grant and checks its fencing number. If the lease has ended, a later
// holder may have been counted first.
func (b *goroutineWorkload) granted(key string, lease *core.Lease, fenced bool) {
	fence := lease.Fence()
	b.mu.Lock()
	if fenced && fence <= b.fences[key] && time.Now().Before(lease.ValidUntil()) {
		b.lowFences = append(b.lowFences, fmt.Sprintf("%s of %s: %d after %d, at %d", lease.Token(), key, fence, b.fences[key], time.Now().UnixMicro()))
	}
	b.fences[key] = max(fence, b.fences[key])
	b.mu.Unlock()
	b.grants.Add(1)
}

func (b *goroutineWorkload) recordError(took time.Duration, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.slowest = max(b.slowest, took)
	// New connections send commands that an old server does not know.
	if err != nil && !errors.Is(err, redis.Nil) && !errors.Is(err, context.Canceled) && !strings.Contains(err.Error(), "unknown subcommand") {
		b.errors[err.Error()]++
	}
}

// resetSlowest ignores earlier commands: the first ones of a client are slow.
func (b *goroutineWorkload) resetSlowest() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.slowest = 0
}

// sawError reports whether a command has failed with an error that contains one of these
// texts.
func (b *goroutineWorkload) sawError(texts ...string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for text := range b.errors {
		if slices.ContainsFunc(texts, func(part string) bool { return strings.Contains(text, part) }) {
			return true
		}
	}
	return false
}

// Processes implements Workload.
func (b *goroutineWorkload) Processes() []int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(maps.Keys(b.processes))
}

// Kill implements Workload.
func (b *goroutineWorkload) Kill(process int) {
	b.mu.Lock()
	b.processes[process]()
	delete(b.processes, process)
	b.calls = append(b.calls, "kill")
	b.mu.Unlock()
	b.startProcess()
}

// Stop implements Workload.
func (b *goroutineWorkload) Stop(int) { b.call("stop") }

// Continue implements Workload.
func (b *goroutineWorkload) Continue(int) { b.call("continue") }

func (b *goroutineWorkload) call(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls = append(b.calls, name)
}

// AwaitGrants implements Workload.
func (b *goroutineWorkload) AwaitGrants(more int) {
	b.Helper()
	want := b.Grants() + more
	defer func() {
		if b.Grants() < want {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.Logf("errors: %v", b.errors)
		}
	}()
	suite.Eventually(b, fmt.Sprint(want, " grants"), func() bool { return b.Grants() >= want })
}

// Grants implements Workload.
func (b *goroutineWorkload) Grants() int { return int(b.grants.Load()) }

// A recordingConn records reads that end within a line.
type recordingConn struct {
	net.Conn
	workload *goroutineWorkload
}

func (r *recordingConn) Read(into []byte) (int, error) {
	n, err := r.Conn.Read(into)
	if errors.Is(err, syscall.ECONNRESET) {
		r.workload.recordError(0, err) // go-redis does not report this error
	}
	if n > 0 && into[n-1] != '\n' {
		r.workload.mu.Lock()
		r.workload.tornReads++
		r.workload.mu.Unlock()
	}
	return n, err
}

// A recordingHook records the results of the commands of a client.
type recordingHook struct{ workload *goroutineWorkload }

func (recordingHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (l recordingHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		begun := time.Now()
		err := next(ctx, cmd)
		l.workload.recordError(time.Since(begun), err)
		return err
	}
}

func (l recordingHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		begun := time.Now()
		err := next(ctx, cmds)
		l.workload.recordError(time.Since(begun), err)
		for _, cmd := range cmds {
			l.workload.recordError(0, cmd.Err())
		}
		return err
	}
}
