package adapter

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
)

// A failure is an error of a key that has a status.
type failure int

func (failure) Error() string     { return "secret" }
func (f failure) StatusCode() int { return int(f) }

// A mistake of the program that refuses requests is a warning, once for each middleware and key. What
// a client can mend is none, and neither is what the program says on purpose.
func TestMistakesOfKeysAreWarnings(t *testing.T) {
	t.Parallel()
	type key = core.Key[*http.Request]
	own := func(text string, err error) key {
		return core.KeyOf(func(*http.Request) (string, error) { return text, err })
	}
	get := func(stored any) key {
		return core.KeyOf(func(*http.Request) (string, error) { return Value(stored) }).Describe(`Get("user")`, "")
	}
	header := core.KeyOf(func(*http.Request) (string, error) { return Only(nil) }).Describe(`Header("x")`, `the header "x"`)
	const unset = `Get("user") refuses requests, because no middleware has set its value, or the value is empty: let the middleware that sets`
	for name, test := range map[string]struct {
		key  key
		want string // in the warning; "": there is none
	}{
		"no value":                   {get(nil), unset},
		"an empty value":             {get(""), unset},
		"an empty value, by As":      {core.KeyOf(func(*http.Request) (string, error) { return ValueAs(7, func(int) string { return "" }) }), "no middleware"},
		"a value of another type":    {get(struct{}{}), `Get("user") refuses requests, because a value of type struct {} is no key: set a string`},
		"a part":                     {core.Join(header.When(func(*http.Request) bool { return true }), get(nil)), ""},
		"a part that is read":        {core.Join(own("a", nil), get(nil)).Named("user"), unset},
		"one of several":             {core.All(own("a", nil), get(nil)), unset},
		"no choice":                  {core.First(get(nil), get("")), `First(Get("user"), Get("user")) refuses requests, because no middleware`},
		"a choice of the client":     {core.First(get(nil), header), ""},
		"a choice on purpose":        {core.First(get(nil), own("", core.ErrNoKey)), ""},
		"another choice":             {core.First(header, get(nil)), ""},
		"an empty key":               {own("", nil), "because it returns an empty key: let it read the name that clients send, return core.ErrNoKey if the client"},
		"an empty key of the client": {own("", nil).Describe("session()", "the cookie"), ""},
		"ErrNoKey on purpose":        {own("", core.ErrNoKey), ""},
		"a header":                   {header, ""},
		"a malformed value":          {get("secret\n"), ""},
		"an error":                   {own("", errors.New("secret")), "with key_error, because it fails with an error of its own: core.SlogObserver logs it"},
		"an error of the client":     {own("", failure(403)), ""},
		"an outage":                  {own("", failure(503)), "with key_error"},
		"a consumed body":            {own("", BodyConsumed(`JSONField("id")`)), `JSONField("id") refuses requests whose body a middleware outside has read`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks, warnings := newWarned(t)
			lock, err := NewLock(self, "Middleware", locks.Locker, test.key, nil)
			if err != nil {
				t.Fatal(err)
			}
			once, err := newIdempotent(locks.Locker, test.key, nil)
			if several := name == "one of several"; several == (err == nil) {
				t.Fatal(err)
			}
			for range 3 {
				entry, err := lock.Enter(t.Context(), payment(t, "k", ""))
				entry.Refuse(httptest.NewRecorder(), err)
				if once == nil {
					continue
				}
				entry, _, err = once.Begin(t.Context(), payment(t, "k", ""))
				guard := entry.Guard(httptest.NewRecorder(), err)
				guard.Finish()
			}
			n := 2
			if once == nil {
				n = 1
			}
			if test.want == "" {
				n = 0
			}
			if text := strings.Join(*warnings, "\n"); len(*warnings) != n || strings.Count(text, test.want) < n || strings.Contains(text, "secret") {
				t.Errorf("%d warnings, want %d with %q:\n%s", len(*warnings), n, test.want, text)
			}
		})
	}
}

// The answer of the program's error handler to an error of its key is its own way to refuse a request.
func TestAnswerOfAnErrorHandlerIsNoMistake(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t, core.WithObserver(func(e core.Event) {
		if e.Kind == core.Warned {
			t.Error(e.Err)
		}
	}))
	key := core.KeyOf(func(*http.Request) (string, error) { return "", errors.New("no user") })
	lock, err := NewLock(self, "Middleware", locks.Locker, key, nil)
	if err != nil {
		t.Fatal(err)
	}
	entry, err := lock.Enter(t.Context(), payment(t, "k", ""))
	guard := entry.Guard(httptest.NewRecorder(), err)
	guard.WriteHeader(http.StatusUnauthorized)
	guard.Finish()
}

// The end of a request's context is no mistake, and may be the error of its key, or be given to
// WriteError by its handler.
func TestEndOfARequestIsNoMistake(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t, core.WithObserver(func(e core.Event) {
		if e.Kind == core.Warned {
			t.Error(e.Err)
		}
	}))
	late := errors.New("too late")
	for name, cause := range map[string]error{"canceled": nil, "a deadline": context.DeadlineExceeded, "an own cause": late} {
		ctx, cancel := context.WithCancelCause(t.Context())
		key := core.KeyOf(func(r *http.Request) (string, error) {
			cancel(cause)
			return "", fmt.Errorf("query: %w", context.Cause(r.Context()))
		})
		r := payment(t, name, "").WithContext(ctx)
		lock := Must(NewLock(self, "Middleware", locks.Locker, key, nil))
		entry, err := lock.Enter(ctx, r)
		entry.Refuse(httptest.NewRecorder(), err)
		entry.Leave()
		entry, err = lock.Enter(ctx, r)
		entry.Guard(httptest.NewRecorder(), err).Finish()
		entry.Leave()
		once := Must(newIdempotent(locks.Locker, key, nil))
		entry, _, err = once.Begin(ctx, r)
		entry.Refuse(httptest.NewRecorder(), err)
		entry.Leave()

		ctx, cancel = context.WithCancelCause(t.Context())
		entry, err = Must(NewLock(self, "Middleware", locks.Locker, ofHeader, nil)).Enter(ctx, r.WithContext(ctx))
		if err != nil {
			t.Fatal(err)
		}
		cancel(cause)
		WriteRefusal(httptest.NewRecorder(), InContext(entry.Context(), context.Cause(entry.Context())))
		entry.Leave()
	}
}

// An error that is not one of reqlock is answered with 500, and is a warning, once: from a handler under
// its lock, and from an error handler.
func TestErrorOfAnotherPackageIsAWarning(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(t *testing.T, lock *Lock[*http.Request], err error){
		"a handler": func(t *testing.T, lock *Lock[*http.Request], err error) {
			t.Helper()
			entry, refused := lock.Enter(t.Context(), payment(t, "k", ""))
			if refused != nil {
				t.Error(refused)
			}
			WriteRefusal(httptest.NewRecorder(), InContext(entry.Context(), err))
			entry.Leave()
		},
		"an error handler": func(t *testing.T, lock *Lock[*http.Request], err error) {
			t.Helper()
			entry, refused := lock.Enter(t.Context(), payment(t, "", ""))
			WriteRefusal(entry.Guard(httptest.NewRecorder(), refused), err)
			entry.Leave()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks, warnings := newWarned(t)
			lock, err := NewLock(self, "Middleware", locks.Locker, ofHeader, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, err := range []error{core.ErrBusy, errors.New("secret"), nil} {
				answer(t, lock, err)
			}
			const want = "with 500 (internal), because the error that the program gave is not one of reqlock"
			if text := strings.Join(*warnings, "\n"); len(*warnings) != 1 || !strings.Contains(text, want) || strings.Contains(text, "secret") {
				t.Errorf("warned %q", *warnings)
			}
		})
	}
}

// A lock middleware inside another one with the same key is a warning, once. One with another key is
// none, and neither is one for another request under the first lock: of a batch, or routed again.
func TestLockTwiceIsAWarning(t *testing.T) {
	t.Parallel()
	query := core.KeyOf(func(r *http.Request) (string, error) { return "q" + r.URL.RawQuery, nil })
	for name, inner := range map[string]struct {
		key    core.Key[*http.Request]
		opts   []core.Option
		target string
		want   int
	}{
		"the same key":                    {ofHeader, nil, "/payments", 1},
		"the same key with other options": {ofHeader, []core.Option{core.WithWait(time.Second)}, "/payments", 1},
		"another key":                     {ofHeader.Named("inner"), nil, "/payments", 0},
		"another key with the same value": {core.KeyOf(func(*http.Request) (string, error) { return "k", nil }), nil, "/payments", 0},
		"another request":                 {ofHeader, nil, "/orders", 0},
		"more locks than the outer one":   {core.All(ofHeader, query), nil, "/payments?1", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks, warnings := newWarned(t)
			outerKey := ofHeader
			if inner.key.String() == core.All(ofHeader, query).String() {
				outerKey = inner.key
			}
			outer := Must(NewLock(self, "Middleware", locks.Locker, outerKey, nil))
			second := Must(NewLock(self, "Middleware", locks.Locker, inner.key, inner.opts))
			for range 2 {
				r := payment(t, "k", "")
				first, err := outer.Enter(r.Context(), r)
				if err != nil {
					t.Fatal(err)
				}
				r = first.Request(r)
				r.URL = Must(url.Parse(inner.target))
				entry, err := second.Enter(r.Context(), r)
				if err != nil {
					t.Fatal(err)
				}
				entry.Request(r)
				entry.Leave()
				first.Leave()
			}
			const want = "reqlock: test: two middlewares lock a request with the key "
			if len(*warnings) != inner.want || inner.want > 0 && !strings.HasPrefix((*warnings)[0], want) {
				t.Errorf("warned %q", *warnings)
			}
		})
	}
}

// Two idempotent middlewares around one route are a warning, once.
func TestNestedAttemptIsAWarning(t *testing.T) {
	t.Parallel()
	locks, warnings := newWarned(t)
	endpoint, err := newIdempotent(locks.Locker, ofHeader, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"a", "b"} {
		outer, err := begin(endpoint, payment(t, key, ""))
		if err != nil {
			t.Fatal(err)
		}
		behind := outer.attempt.Lease().Context()
		for _, inner := range []string{key, "another"} { // of another key it is a request of its own
			x, err := begin(endpoint, payment(t, inner, "").WithContext(behind))
			if err != nil || x.attempt.Abort(behind) != nil {
				t.Errorf("%s: %v", inner, err)
			}
		}
		_ = outer.attempt.Abort(t.Context())
	}
	if len(*warnings) != 1 || !strings.HasPrefix((*warnings)[0], "reqlock: test: two idempotent middlewares run a route without a pattern with the same key") {
		t.Errorf("warned %q", *warnings)
	}
}

// newWarned returns a Locker, and the texts of its warnings so far.
func newWarned(t *testing.T) (*locktest.Locks, *[]string) {
	t.Helper()
	warnings := new([]string)
	return locktest.New(t, core.WithObserver(func(e core.Event) {
		if e.Kind == core.Warned {
			*warnings = append(*warnings, e.Err.Error())
		}
	})), warnings
}
