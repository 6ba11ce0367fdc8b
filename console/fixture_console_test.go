package console_test

import (
	"context"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/console"
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/inspect"
	"github.com/reqlock/reqlock/internal/redis/keyspace"
	"github.com/reqlock/reqlock/internal/redis/registry"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// must returns the result of a call. It fails the test if the call has failed.
func must[T any](result T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
}

// newLocker returns a Locker, as another process has one, that is closed at the end of the test.
func newLocker(t testing.TB, rdb redis.UniversalClient, opts ...core.Option) *core.Locker {
	t.Helper()
	locks := must(core.New(rdb, append([]core.Option{core.WithLogger(nil), core.WithCommandTimeout(4 * time.Second)}, opts...)...))(t)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond) // leases may be left
		defer cancel()
		_ = locks.Close(ctx)
		ctx, cancel = context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = locks.Close(ctx)
	})
	return locks
}

// A site is a Console, and the changes that its Inspector has reported.
type site struct {
	*console.Console
	inspector *inspect.Inspector

	mu      sync.Mutex
	changes []core.Event
}

// pauseOfSites is the pause between two scans of a Console that newSite returns.
const pauseOfSites = 100 * time.Millisecond

// newSite returns a Console of a Redis. ada may carry out all actions, unless the options say otherwise.
func newSite(t *testing.T, rdb redis.UniversalClient, opts ...console.Option) *site {
	t.Helper()
	s := &site{}
	s.inspector = must(inspect.New(rdb, inspect.WithObserver(func(e core.Event) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.changes = append(s.changes, e)
	})))(t)
	opts = append([]console.Option{
		console.WithActions(console.Revoke, console.FreeNow, console.Resolve),
		console.WithActor(func(r *http.Request) string { return r.Header.Get("User") }),
	}, opts...)
	s.Console = must(console.New(s.inspector, opts...))(t)
	console.SetPause(s.Console, pauseOfSites)
	return s
}

// An answer is what a Console has answered.
type answer struct {
	*httptest.ResponseRecorder
}

// text returns the text of the page, in one line.
func (a answer) text() string {
	body := regexp.MustCompile(`(?s)<head>.*</head>|<[^>]*>`).ReplaceAllString(a.Body.String(), " ")
	return html.UnescapeString(strings.Join(strings.Fields(body), " "))
}

// want fails the test unless the page has the status, and each of the texts.
func (a answer) want(t *testing.T, status int, texts ...string) {
	t.Helper()
	if a.Code != status {
		t.Errorf("status %d, want %d: %s", a.Code, status, a.text())
	}
	for _, text := range texts {
		if !strings.Contains(a.text(), text) {
			t.Errorf("the page has not %q: %s", text, a.text())
		}
	}
}

// get returns the page of a query, as ada sees it.
func get(t *testing.T, h http.Handler, query string) answer {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/"+query, nil)
	r.Header.Set("User", "ada")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return answer{w}
}

// post sends a form as ada, with further headers.
func post(t *testing.T, h http.Handler, query string, form url.Values, headers ...string) answer {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/"+query, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("User", "ada")
	for pair := range slices.Chunk(headers, 2) {
		r.Header.Set(pair[0], pair[1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return answer{w}
}

// without returns a form without a field, and with other values for it.
func without(form url.Values, field string, values ...string) url.Values {
	other := url.Values{}
	for name, value := range form {
		other[name] = value
	}
	other[field] = values
	return other
}

// wait makes another process wait for the key until the test ends.
func (s *site) wait(t *testing.T, locks *core.Locker, key string) (granted <-chan *core.Lease) {
	t.Helper()
	leases, ended := make(chan *core.Lease, 1), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(ended)
		if lease, err := locks.Lock(ctx, key); err == nil {
			leases <- lease
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	suite.Eventually(t, "a process waits", func() bool { return s.lock(t, key).Waiting > 0 })
	return leases
}

// lock returns what is known of a lock.
func (s *site) lock(t *testing.T, key string) inspect.Lock {
	t.Helper()
	return must(s.inspector.Lock(t.Context(), key))(t)
}

// unknown makes a request with an unknown outcome, and returns its record.
func (s *site) unknown(t *testing.T, locks *core.Locker, key string) inspect.Record {
	t.Helper()
	attempt := must(locks.Begin(t.Context(), key, nil))(t)
	if err := attempt.Unknown(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return must(s.inspector.Record(t.Context(), key))(t)
}

// processOf returns the id of the process of a lease.
func processOf(lease *core.Lease) string {
	process, _, _ := strings.Cut(lease.Token(), ":")
	return process
}

// register writes the record of a process, as core.WithInstance does: it has held and awaited the keys of
// these digests for two hours.
func register(t *testing.T, rdb redis.UniversalClient, id, service string, holds, waits []string) {
	t.Helper()
	now, name, i := time.Now(), keyspace.New("reqlock:").Process(id), must(inspect.New(rdb))(t)
	p := registry.Process{Service: service, Host: "pod-7", Version: "v1.2.3", PID: 4242, Started: now.Add(-3 * time.Hour), Beat: now, Held: len(holds), Waiting: 4 * len(waits)}
	for _, digest := range holds {
		lease := inspect.LeaseID("")
		for _, h := range must(i.Lock(t.Context(), digest))(t).Holders {
			if h.Process == id {
				lease = h.Lease
			}
		}
		p.Holds = append(p.Holds, registry.Hold{Digest: digest, Lease: string(lease), Name: "account", Since: now.Add(-2 * time.Hour), Caller: "transfer.go:42"})
	}
	for _, digest := range waits {
		p.Waits = append(p.Waits, registry.Wait{Digest: digest, Name: "account", Since: now.Add(-2 * time.Hour), Caller: "withdraw.go:7", Requests: 4})
	}
	if err := rdb.HSet(t.Context(), name, registry.Encode(&p, time.Hour)...).Err(); err != nil {
		t.Fatal(err)
	}
	if err := rdb.PExpire(t.Context(), name, time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
}
