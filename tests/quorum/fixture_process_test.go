package quorum

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/nethttplock"
	"github.com/reqlock/reqlock/tests/internal/history"
)

// ttl is the TTL of the leases, and so the quarantine of a restarted node. A quarter of
// it is the timeout of a command, which has room for a busy machine. The TTL is longer with
// the race detector, which makes all code about ten times slower, and in the full tier, in
// which sixteen rows run beside other packages.
var ttl = usualTTL()

func usualTTL() time.Duration {
	switch {
	case suite.Race:
		return 6 * time.Second
	case suite.IsFull():
		return 4 * time.Second
	}
	return 3 * time.Second
}

// A process is a Locker with clients and an HTTP server of its own.
type process struct {
	name    string
	locks   *core.Locker
	web     *httptest.Server
	history *history.Recorder
	stalls  *stallDetector

	mu    sync.Mutex
	waits map[string]int // for each key, how many callers have waited
}

// The headers of a request.
const (
	keyHeader    = "lock-key"
	holderHeader = "holder"
)

// newProcess returns a process that ends with the test.
func newProcess(t *testing.T, name string, n nodes, h *history.Recorder, opts ...core.Option) *process {
	t.Helper()
	p := &process{name: name, history: h, stalls: newStallDetector(t), waits: map[string]int{}}
	opts = append([]core.Option{core.WithTTL(ttl), core.WithCommandTimeout(ttl / 4), core.WithObserver(p.observe)}, opts...)
	p.locks = core.Must(core.NewQuorum(n.clients(t), opts...))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := p.locks.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	serve := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		runSection(r.Context(), h, r.Header.Get(holderHeader), sectionTime)
		w.WriteHeader(http.StatusNoContent)
	})
	key := nethttplock.Header(keyHeader)
	mux := http.NewServeMux()
	mux.Handle("POST /wait", nethttplock.Middleware(p.locks, key, core.WithWait(patience))(serve))
	mux.Handle("POST /try", nethttplock.Middleware(p.locks, key)(serve))
	p.web = httptest.NewServer(mux)
	t.Cleanup(p.web.Close)
	return p
}

func (p *process) observe(event core.Event) {
	if event.Kind == core.Waiting {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.waits[event.Key.Raw()]++
	}
}

func (p *process) waiters(key string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waits[key]
}

// An answer is the answer to a request.
type answer struct {
	status           int
	mime, retryAfter string
	code             string // of an error
}

func (p *process) post(path, holder, key string) (a answer, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.web.URL+path, http.NoBody)
	if err != nil {
		return a, err
	}
	r.Header.Set(keyHeader, key)
	r.Header.Set(holderHeader, holder)
	got, err := p.web.Client().Do(r)
	if err != nil {
		return a, err
	}
	defer func() { _ = got.Body.Close() }()
	body, err := io.ReadAll(got.Body)
	a = answer{status: got.StatusCode, mime: got.Header.Get("Content-Type"), retryAfter: got.Header.Get("Retry-After")}
	if err == nil && len(body) > 0 {
		var problem struct{ Code string }
		err = json.Unmarshal(body, &problem)
		a.code = problem.Code
	}
	return a, err
}

// sectionTime is how long a short critical section lasts.
const sectionTime = 2 * time.Millisecond

// A method is a way to lock a key for a short section. Except TryLock it waits for the
// key. It may run on any goroutine.
type method struct {
	name string
	lock func(p *process, holder, key string) error
}

var (
	byLock = method{"Lock", func(p *process, holder, key string) error {
		lease, err := p.locks.With(core.WithWait(patience)).Lock(context.Background(), key)
		if err != nil {
			return err
		}
		return p.useLease(lease, holder)
	}}
	byDo = method{"Do", func(p *process, holder, key string) error {
		return p.locks.With(core.WithWait(patience)).Do(context.Background(), key, func(ctx context.Context) error {
			runSection(ctx, p.history, holder, sectionTime)
			return nil
		})
	}}
	// byTryLock does not wait, and the key may be busy. It has the time of one command.
	byTryLock = method{"TryLock", func(p *process, holder, key string) error {
		started := time.Now()
		lease, err := p.locks.TryLock(context.Background(), key)
		if errors.Is(err, core.ErrBusy) || p.mayExcuse(err, started) {
			return nil
		} else if err != nil {
			return err
		}
		return p.useLease(lease, holder)
	}}
	byHTTP = method{"HTTP", func(p *process, holder, key string) error {
		got, err := p.post("/wait", holder, key)
		if err == nil && got.status != http.StatusNoContent {
			err = fmt.Errorf("answered %+v", got)
		}
		return err
	}}
)

func methods() []method { return []method{byLock, byDo, byTryLock, byHTTP} }

// useLease runs a section and releases the lease. The release may be unconfirmed: after
// a node has lost its vote, the other voters are no majority.
func (p *process) useLease(lease *core.Lease, holder string) error {
	runSection(lease.Context(), p.history, holder, sectionTime)
	if err := lease.Release(context.Background()); !errors.Is(err, core.ErrUnavailable) {
		return err
	}
	return nil
}

// mayExcuse reports whether err is that Redis is unavailable, and the cause may be that
// the machine did not run this process since the call.
func (p *process) mayExcuse(err error, since time.Time) bool {
	return errors.Is(err, core.ErrUnavailable) && p.stalls.stalledSince(since)
}
