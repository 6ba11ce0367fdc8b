package quorum

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/nethttplock"
)

// ttl is the life of the leases, and so how long a node that came back gives no
// votes. A quarter of it is the bound of a command: it has room for a busy machine.
const ttl = 4 * time.Second

// A process is a Locker with clients and an HTTP server of its own.
type process struct {
	name    string
	locks   *core.Locker
	web     *httptest.Server
	history *history
	pulse   *pulse

	mu    sync.Mutex
	waits map[string]int // how many have waited for each key
}

// The headers of a request.
const (
	keyHeader = "lock-key"
	byHeader  = "asked-by"
)

// newProcess returns a process that ends with the test.
func newProcess(t *testing.T, name string, n nodes, h *history, opts ...core.Option) *process {
	t.Helper()
	p := &process{name: name, history: h, pulse: startPulse(t), waits: map[string]int{}}
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
		h.section(r.Context(), r.Header.Get(byHeader), short)
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

// waited returns how many have waited for the key.
func (p *process) waited(key string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waits[key]
}

// An answer is what a request over HTTP was told.
type answer struct {
	status           int
	mime, retryAfter string
	code             string // of a problem
}

// post asks for a key over HTTP.
func (p *process) post(path, by, key string) (a answer, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.web.URL+path, http.NoBody)
	if err != nil {
		return a, err
	}
	r.Header.Set(keyHeader, key)
	r.Header.Set(byHeader, by)
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
