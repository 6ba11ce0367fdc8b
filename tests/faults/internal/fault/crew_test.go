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
	"github.com/reqlock/reqlock/tests/faults/internal/network"
)

// A band is a Crew of goroutines: each process is a client and a Locker of its
// own. A killed one is cut from its servers, and one that stands still is only
// written down.
type band struct {
	*testing.T
	servers []string
	network *network.Network
	keys    []string
	ttl     time.Duration
	callers int // of each process

	grants  atomic.Int64
	running sync.WaitGroup

	mu      sync.Mutex
	next    int
	members map[int]context.CancelFunc
	calls   []string         // of Kill, Stop and Continue
	errors  map[string]int   // of commands, by their text
	slowest time.Duration    // of all commands
	torn    int              // reads that ended in the midst of a line
	fences  map[string]int64 // the last one of each key
	fallen  []string         // fences that did not rise
}

// commandTimeout is for how long the Lockers of a band wait for the reply to a command.
const commandTimeout = 100 * time.Millisecond

func newBand(t *testing.T, n *network.Network, crowd bool, ttl time.Duration, keys []string, servers ...string) *band {
	t.Helper()
	b := &band{
		T: t, servers: servers, network: n, keys: keys, ttl: ttl,
		members: map[int]context.CancelFunc{}, errors: map[string]int{}, fences: map[string]int64{},
	}
	processes := 3
	b.callers = 4
	if crowd {
		processes, b.callers = 1, 24
	}
	for range processes {
		b.enlist()
	}
	t.Cleanup(b.rest)
	return b
}

// rest ends all processes, in peace.
func (b *band) rest() {
	b.mu.Lock()
	for _, end := range b.members {
		end()
	}
	b.mu.Unlock()
	b.running.Wait()
}

// enlist starts a process.
func (b *band) enlist() {
	b.mu.Lock()
	b.next++
	process := b.next
	ctx, cancel := context.WithCancel(context.Background())
	b.members[process] = cancel
	b.mu.Unlock()
	rdb := b.client(process)
	locks := core.Must(core.New(rdb, core.WithTTL(b.ttl), core.WithCommandTimeout(commandTimeout)))
	var working sync.WaitGroup
	own := "reqlock:" + strconv.Itoa(process) // nobody else wants it
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

// client returns the client of a process, on its path.
func (b *band) client(process int) *redis.Client {
	routes := b.network.Path(process).Routes
	rdb := redis.NewClient(&redis.Options{
		Addr: b.servers[0], ContextTimeoutEnabled: true,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			var dialer net.Dialer
			conn, err := dialer.DialContext(ctx, network, routes[addr])
			if err != nil {
				b.note(0, err)
				return nil, err
			}
			return &reader{conn, b}, nil
		},
	})
	rdb.AddHook(listener{b})
	return rdb
}

// work takes locks until ctx ends, or one of its own if it is the first.
func (b *band) work(ctx context.Context, locks *core.Locker, i int, own string) {
	for turn := i; ctx.Err() == nil; turn++ {
		key := b.keys[turn%len(b.keys)]
		if i == 0 {
			key = own
		}
		// Without fencing a lock that is free is taken by SET.
		lease, err := locks.With(core.WithWait(time.Duration(i)*50*time.Millisecond), core.WithFencing(i > 0)).Lock(ctx, strings.TrimPrefix(key, "reqlock:"))
		if err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(time.Millisecond):
			}
			continue
		}
		b.granted(key, lease, i > 0)
		time.Sleep(time.Millisecond)
		_ = lease.Release(ctx)
	}
}

// granted counts a grant, and looks at its fence: not where the lease is over, since a
// later holder may have come first then.
func (b *band) granted(key string, lease *core.Lease, fenced bool) {
	fence := lease.Fence()
	b.mu.Lock()
	if fenced && fence <= b.fences[key] && time.Now().Before(lease.ValidUntil()) {
		b.fallen = append(b.fallen, fmt.Sprintf("%s of %s: %d after %d, at %d", lease.Token(), key, fence, b.fences[key], time.Now().UnixMicro()))
	}
	b.fences[key] = max(fence, b.fences[key])
	b.mu.Unlock()
	b.grants.Add(1)
}

func (b *band) note(took time.Duration, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.slowest = max(b.slowest, took)
	// A first connection asks for what the server may not know yet.
	if err != nil && !errors.Is(err, redis.Nil) && !errors.Is(err, context.Canceled) && !strings.Contains(err.Error(), "unknown subcommand") {
		b.errors[err.Error()]++
	}
}

// forgetSlowest forgets how long commands have taken so far, as the first of a client do.
func (b *band) forgetSlowest() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.slowest = 0
}

// heard tells whether a command has ended with an error with one of these words in
// it.
func (b *band) heard(words ...string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for text := range b.errors {
		if slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) }) {
			return true
		}
	}
	return false
}

// Processes implements Crew.
func (b *band) Processes() []int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(maps.Keys(b.members))
}

// Kill implements Crew.
func (b *band) Kill(process int) {
	b.mu.Lock()
	b.members[process]()
	delete(b.members, process)
	b.calls = append(b.calls, "kill")
	b.mu.Unlock()
	b.enlist()
}

// Stop implements Crew.
func (b *band) Stop(int) { b.call("stop") }

// Continue implements Crew.
func (b *band) Continue(int) { b.call("continue") }

func (b *band) call(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls = append(b.calls, name)
}

// AwaitGrants implements Crew.
func (b *band) AwaitGrants(more int) {
	b.Helper()
	want := b.Grants() + more
	for deadline := time.Now().Add(patience); b.Grants() < want; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			b.Fatalf("%d grants are missing; errors: %v", want-b.Grants(), b.errors)
		}
	}
}

// Grants implements Crew.
func (b *band) Grants() int { return int(b.grants.Load()) }

// A reader notes packets that end in the midst of a line.
type reader struct {
	net.Conn
	band *band
}

func (r *reader) Read(into []byte) (int, error) {
	n, err := r.Conn.Read(into)
	if errors.Is(err, syscall.ECONNRESET) {
		r.band.note(0, err) // go-redis does not tell: it goes on reading, to the end
	}
	if n > 0 && into[n-1] != '\n' {
		r.band.mu.Lock()
		r.band.torn++
		r.band.mu.Unlock()
	}
	return n, err
}

// A listener notes how the commands of a client end.
type listener struct{ band *band }

func (listener) DialHook(next redis.DialHook) redis.DialHook { return next }

func (l listener) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		begun := time.Now()
		err := next(ctx, cmd)
		l.band.note(time.Since(begun), err)
		return err
	}
}

func (l listener) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		begun := time.Now()
		err := next(ctx, cmds)
		l.band.note(time.Since(begun), err)
		for _, cmd := range cmds {
			l.band.note(0, cmd.Err())
		}
		return err
	}
}
