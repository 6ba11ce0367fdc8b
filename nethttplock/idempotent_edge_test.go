package nethttplock_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
	"github.com/reqlock/reqlock/nethttplock"
)

// A header that the handler sets is part of its answer, even if a middleware outside
// has set it to the same value before. Here that middleware negotiates the content
// type.
func TestIdempotentStoresAHeaderThatWasSetOutside(t *testing.T) {
	t.Parallel()
	h := nethttplock.Idempotent(locktest.New(t).Locker, byKey)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"name":"<script>"}`)
	}))
	outer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", r.Header.Get("Accept"))
		h.ServeHTTP(w, r)
	})
	for _, accept := range []string{"application/json", "text/html"} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader("b"))
		r.Header.Set("Idempotency-Key", "k")
		r.Header.Set("Accept", accept)
		w := httptest.NewRecorder()
		outer.ServeHTTP(w, r)
		if got := w.Header().Get("Content-Type"); got != "application/json" {
			t.Errorf("the copy of JSON is %q: %s", got, w.Body)
		}
	}
}

// WithStored panics after the handler has run: a copy does not run.
func TestIdempotentStoredPanics(t *testing.T) {
	t.Parallel()
	runs := 0
	h := nethttplock.Idempotent(locktest.New(t).Locker, byKey, core.WithStored(func(int) bool { panic("bug") }))(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { runs++; w.WriteHeader(201) }))
	for range 2 {
		func() {
			defer func() { _ = recover() }()
			adaptertest.Pay(t, h, "/", "k", "")
		}()
	}
	if runs != 1 {
		t.Errorf("ran %d times", runs)
	}
}

// A refusal of an inner lock is not stored, whatever its status is.
func TestIdempotentInnerRefusalStored(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t).Locker
	runs := 0
	inner := nethttplock.Middleware(locks, nethttplock.Literal("account"), nethttplock.WithErrorHandler(
		func(w http.ResponseWriter, _ *http.Request, _ error) {
			http.Error(w, "try later", http.StatusBadRequest)
		}))
	h := nethttplock.Idempotent(locks, byKey)(inner(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { runs++ })))
	lease, err := locks.Lock(t.Context(), "account")
	if err != nil {
		t.Fatal(err)
	}
	adaptertest.Pay(t, h, "/", "k", "")
	_ = lease.Release(t.Context())
	w := adaptertest.Pay(t, h, "/", "k", "")
	if runs != 1 {
		t.Errorf("the lock is free, and the copy got %d %s %v", w.Code, w.Body, w.Header())
	}
}

// Two nested Idempotents, with one key or with two.
func TestIdempotentNested(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t).Locker
	for name, keys := range map[string][2]nethttplock.Key{
		"the same":  {byKey, byKey},
		"two keys":  {byKey, nethttplock.Header("X-Inner")},
		"two users": {core.Join(nethttplock.Literal("a"), byKey), core.Join(nethttplock.Literal("b"), byKey)},
	} {
		runs, status := 0, 503
		h := nethttplock.Idempotent(locks, core.Join(nethttplock.Literal(name), keys[0]))(nethttplock.Idempotent(locks, core.Join(nethttplock.Literal(name), keys[1]))(
			http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				runs++
				w.Header().Set("Location", "/1")
				w.Header().Set("Set-Cookie", "a=b")
				w.WriteHeader(status)
				_, _ = io.WriteString(w, "paid")
			})))
		send := func() (int, string, http.Header) {
			r, _ := http.NewRequestWithContext(t.Context(), "POST", "/x", strings.NewReader("b"))
			r.Header.Set("Idempotency-Key", "k")
			r.Header.Set("X-Inner", "i")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w.Code, w.Body.String(), w.Header()
		}
		send()
		status = 201
		c1, b1, h1 := send()
		c2, b2, h2 := send()
		if runs != 2 || c1 != 201 || c2 != 201 || b1 != b2 || h2.Get("Location") != "/1" || h2.Get("Set-Cookie") != "" || h1.Get("Set-Cookie") == "" || h1.Get("Idempotent-Replayed") != "" {
			t.Errorf("%s: %d runs, %v %v %v, %v %v %v", name, runs, c1, b1, h1, c2, b2, h2)
		}
	}
}

// Around a mounted mux, the path is the route.
func TestIdempotentAroundMountedMux(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t).Locker
	sub := http.NewServeMux()
	for _, p := range []string{"POST /api/payments", "POST /api/refunds"} {
		sub.HandleFunc(p, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, p) })
	}
	outer := http.NewServeMux()
	outer.Handle("/api/", nethttplock.Idempotent(locks, byKey)(sub))
	adaptertest.Pay(t, outer, "/api/payments", "k", "b")
	if w := adaptertest.Pay(t, outer, "/api/refunds", "k", "b"); w.Code != 200 {
		t.Errorf("the key on another route: %d %s", w.Code, w.Body)
	}
}

// A long answer that breaks off is not run again: its client may have read a part of
// it.
func TestIdempotentLongAnswerThatPanics(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t).Locker
	runs := 0
	h := nethttplock.Idempotent(locks, byKey, core.WithMaxAnswer(100))(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		runs++
		_, _ = io.WriteString(w, strings.Repeat("x", 1000))
		panic(http.ErrAbortHandler) // as ReverseProxy does where its client has gone
	}))
	for range 2 {
		func() {
			defer func() { _ = recover() }()
			adaptertest.Pay(t, h, "/", "k", "")
		}()
	}
	if runs != 1 {
		t.Errorf("ran %d times", runs)
	}
}

// Goroutines of a handler may write and flush, also after the handler has returned. The
// answer contains all that they wrote before; a copy gets the same or is refused.
func TestGoroutinesOfIdempotentHandlerMayWrite(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t).Locker
	for _, http2 := range []bool{false, true} {
		var late sync.WaitGroup
		s := httptest.NewUnstartedServer(nethttplock.Idempotent(locks, byKey, core.WithMaxAnswer(3000))(http.HandlerFunc(
			func(w http.ResponseWriter, r *http.Request) {
				var wg sync.WaitGroup
				for i := range 4 {
					wg.Go(func() { _, _ = fmt.Fprint(w, strings.Repeat("x", 500)) })
					wg.Go(func() {
						if i == 2 && r.Header.Get("X-Flush") != "" {
							w.(http.Flusher).Flush()
						}
					})
					late.Go(func() {
						for range 200 {
							_, _ = w.Write([]byte("late"))
							_ = http.NewResponseController(w).Flush()
						}
					})
				}
				wg.Wait()
			})))
		s.EnableHTTP2 = http2
		s.StartTLS()
		for _, flush := range []string{"", "1"} {
			for i := range 2 {
				r, _ := http.NewRequestWithContext(t.Context(), "POST", s.URL, strings.NewReader("a"))
				r.Header.Set("Idempotency-Key", fmt.Sprint(http2, flush))
				r.Header.Set("X-Flush", flush)
				res, err := s.Client().Do(r)
				if err != nil {
					t.Fatal(err)
				}
				b, err := io.ReadAll(res.Body)
				_ = res.Body.Close()
				isWhole := res.StatusCode == http.StatusOK && strings.Count(string(b), "x") == 4*500
				isRefused := i == 1 && res.StatusCode == http.StatusConflict
				if err != nil || !isWhole && !isRefused {
					t.Errorf("HTTP/2 %t, flush %q, request %d: %d with %d bytes, %v", http2, flush, i, res.StatusCode, len(b), err)
				}
			}
		}
		late.Wait()
		s.Close()
	}
}

// Two endpoints on muxes that are mounted with StripPrefix are two routes.
func TestIdempotentMountedMuxes(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t).Locker
	idem := nethttplock.Idempotent(locks, byKey)
	outer := http.NewServeMux()
	runs := map[string]int{}
	for _, name := range []string{"payments", "refunds"} {
		inner := http.NewServeMux()
		inner.Handle("POST /{id}", idem(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			runs[name]++
			_, _ = io.WriteString(w, name)
		})))
		outer.Handle("/"+name+"/", http.StripPrefix("/"+name, inner))
	}
	adaptertest.Pay(t, outer, "/payments/7", "order-7", "7")
	b := adaptertest.Pay(t, outer, "/refunds/7", "order-7", "7")
	if runs["refunds"] != 1 {
		t.Errorf("refund ran %d times and its client got %d %q", runs["refunds"], b.Code, b.Body)
	}
}

func TestIdempotentCopyLacksADeletedHeader(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t).Locker
	h := nethttplock.Idempotent(locks, byKey)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Del("Content-Type")
		_, _ = io.WriteString(w, "<html>")
	}))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		h.ServeHTTP(w, r)
	}))
	defer s.Close()
	var types []string
	for range 2 {
		r, _ := http.NewRequestWithContext(t.Context(), "POST", s.URL, strings.NewReader("a"))
		r.Header.Set("Idempotency-Key", "deleted")
		res, err := s.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.ReadAll(res.Body)
		_ = res.Body.Close()
		types = append(types, res.Header.Get("Content-Type"))
	}
	if types[0] != types[1] {
		t.Errorf("%q", types)
	}
}
