package adapter

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
)

// ofHeader is the key of the endpoints of these tests.
var ofHeader = core.KeyOf(func(r *http.Request) (string, error) {
	return IdempotencyKey(r.Header.Values("Idempotency-Key"))
})

// self is the name of the adapter of these tests.
const self = Name("test")

// newEndpoint returns an IdempotentHTTP with these options.
func newEndpoint(t *testing.T, l *core.Locker, opts ...core.Option) *IdempotentHTTP[*http.Request] {
	t.Helper()
	l = l.With(core.WithClientCancel(true)) // so that a run can end its context
	endpoint, err := newIdempotent(l, ofHeader, opts)
	if err != nil {
		t.Fatal(err)
	}
	return endpoint
}

// payment returns a POST request with a key and a body.
func payment(t *testing.T, key, body string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/payments", strings.NewReader(body))
	r.Header.Set("Idempotency-Key", `"`+key+`"`)
	return r
}

// newIdempotent returns the middleware of one route.
func newIdempotent(l *core.Locker, key core.Key[*http.Request], opts []core.Option) (*IdempotentHTTP[*http.Request], error) {
	request := NetHTTP(func(r *http.Request) *http.Request { return r }, func(r *http.Request) string { return r.Pattern })
	request.Route = func(*http.Request) string { return "/payments" }
	return NewIdempotentHTTP(self, "Idempotent", l, key, request, opts)
}

// begin begins the attempt of a request.
func begin(m *IdempotentHTTP[*http.Request], r *http.Request) (*Exchange, error) {
	_, x, err := m.Begin(r.Context(), r)
	return x, err
}

// New refuses a Locker that cannot keep records, and wrong settings.
func TestRefusedEndpoint(t *testing.T) {
	t.Parallel()
	var servers []redis.UniversalClient // no command is sent
	for _, addr := range []string{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"} {
		rdb := redis.NewClient(&redis.Options{Addr: addr})
		t.Cleanup(func() { _ = rdb.Close() })
		servers = append(servers, rdb)
	}
	quorum := core.Must(core.NewQuorum(servers))
	adaptertest.CloseAfter(t, quorum)
	for _, test := range []struct {
		locker *core.Locker
		option core.Option
		want   string
	}{
		{locktest.New(t, core.WithFailOpen(true)).Locker, core.WithMaxBody(1), "WithFailOpen"},
		{quorum, core.WithMaxBody(1), "quorum"},
		{locktest.New(t).Locker, core.WithReplayedHeaders("X-Payment", "set-cookie"), `"set-cookie"`},
		{locktest.New(t).Locker, core.WithReplayedHeaders("not a name"), `"not a name"`},
		{locktest.New(t).Locker, core.WithMinHold(time.Second), "WithMinHold has no effect on Idempotent"},
		{locktest.New(t).Locker, core.WithFingerprint(func(int) ([]byte, error) { return nil, nil }), "WithFingerprint: a func(int)"},
	} {
		_, err := newIdempotent(test.locker, ofHeader, []core.Option{test.option})
		if err == nil || !strings.HasPrefix(err.Error(), "reqlock: test: ") || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v does not name %s", err, test.want)
		}
	}
}

// A request that cannot begin has the error of its cause.
func TestRefusedRequest(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	own := func(digest string, err error) []core.Option {
		return []core.Option{core.WithFingerprint(func(*http.Request) ([]byte, error) { return []byte(digest), err })}
	}
	key := Must(core.EndpointKey("POST", "/payments", "damaged"))
	attempt, err := locks.Begin(t.Context(), key, []byte("f"))
	if err == nil {
		err = attempt.Commit(t.Context(), []byte("not an answer"))
	}
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	for name, test := range map[string]struct {
		opts   []core.Option
		method string
		key    string
		body   string
		want   error
	}{
		"another method":           {method: http.MethodPut, key: "k"},
		"no key":                   {want: core.ErrNoKey},
		"a body over the limit":    {opts: []core.Option{core.WithMaxBody(3)}, key: "k", body: "1234", want: core.ErrBodyTooLarge},
		"a fingerprint's error":    {opts: own("", broken), key: "k", want: broken},
		"a fingerprint that skips": {opts: own("", core.ErrSkip), key: "k"},
		"a mismatch":               {opts: own("g", nil), key: "damaged", want: core.ErrMismatch},
		"a damaged record":         {opts: own("f", nil), key: "damaged", want: core.ErrUnreplayable},
	} {
		r := payment(t, test.key, test.body)
		if test.key == "" {
			r.Header.Del("Idempotency-Key")
		}
		if test.method != "" {
			r.Method = test.method
		}
		x, err := begin(newEndpoint(t, locks.Locker, test.opts...), r)
		if x != nil || !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
		if _, known := core.RefusalOf(err); !known && test.want != nil {
			t.Errorf("%s: no refusal of %v", name, err)
		}
	}
}

// An error of the fingerprint names the option that mends it.
func TestErrorOfFingerprintNamesItsOption(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	fails := func(*http.Request) ([]byte, error) { return nil, errors.New("broken") }
	for want, opt := range map[string]core.Option{
		"reqlock: body too large: WithMaxBody(3): over 3 b": core.WithMaxBody(3),
		"reqlock: key function: WithFingerprint(): broken":  core.WithFingerprint(fails),
	} {
		_, err := begin(newEndpoint(t, locks.Locker, opt), payment(t, "k", "1234"))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// The key of an attempt covers the method and the route. The method is in upper case.
func TestKeyOfEndpoint(t *testing.T) {
	t.Parallel()
	endpoint := newEndpoint(t, locktest.New(t).Locker)
	for _, method := range []string{"POST", "post", "Patch"} {
		r := payment(t, "k", "")
		r.Method = method
		x, err := begin(endpoint, r)
		if err != nil {
			t.Fatal(err)
		}
		if want := Must(core.EndpointKey(strings.ToUpper(method), "/payments", "k")); x.attempt.Key() != want {
			t.Errorf("%s: the key is %q, not %q", method, x.attempt.Key(), want)
		}
		if err := x.attempt.Abort(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// If a PUT or a DELETE runs as without Idempotent, the observer gets a warning, once for each
// pattern. The text says what to write.
func TestUncoveredMethod(t *testing.T) {
	t.Parallel()
	const pattern = "/payments/{id}"
	for name, test := range map[string]struct {
		requests [][2]string // the method and the pattern
		methods  []core.Option
		want     []string // what the warnings contain
	}{
		"PUT":              {[][2]string{{"PUT", pattern}}, nil, []string{`PUT on the route "/payments/{id}": write core.WithMethods("POST", "PATCH", "PUT")`}},
		"put":              {[][2]string{{"put", pattern}}, nil, []string{"PUT"}},
		"DELETE":           {[][2]string{{"DELETE", pattern}}, nil, []string{`WithMethods("POST", "PATCH", "DELETE")`}},
		"twice":            {[][2]string{{"PUT", pattern}, {"PUT", pattern}}, nil, []string{pattern}},
		"two patterns":     {[][2]string{{"PUT", pattern}, {"PUT", "/refunds"}}, nil, []string{pattern, "/refunds"}},
		"two methods":      {[][2]string{{"PUT", pattern}, {"DELETE", pattern}}, nil, []string{"PUT", "DELETE"}},
		"no pattern":       {[][2]string{{"PUT", ""}, {"PUT", ""}}, nil, []string{"a route without a pattern"}},
		"safe and unknown": {[][2]string{{"GET", pattern}, {"HEAD", pattern}, {"OPTIONS", pattern}, {"PURGE", pattern}}, nil, nil},
		"chosen":           {[][2]string{{"PUT", pattern}}, []core.Option{core.WithMethods("POST")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var warned []core.Event
			locks := locktest.New(t, core.WithObserver(func(e core.Event) {
				mu.Lock()
				defer mu.Unlock()
				warned = append(warned, e)
			})).Locker
			endpoint := newEndpoint(t, locks, test.methods...)
			for _, sent := range test.requests {
				r := payment(t, "secret", "")
				r.Method, r.URL.Path, r.Pattern = sent[0], "/payments/secret", sent[1]
				if x, err := begin(endpoint, r); x != nil || err != nil {
					t.Errorf("%s: %v", sent[0], err)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			warned = slices.DeleteFunc(warned, func(e core.Event) bool { return e.Kind != core.Warned })
			if len(warned) != len(test.want) {
				t.Fatalf("%d warnings, want %d: %v", len(warned), len(test.want), warned)
			}
			for i, e := range warned {
				text := e.Err.Error()
				if !strings.HasPrefix(text, "reqlock: test: Idempotent does not cover ") || !strings.Contains(text, test.want[i]) ||
					strings.Contains(text, "secret") {
					t.Errorf("%q does not contain %q", text, test.want[i])
				}
			}
		})
	}
}
