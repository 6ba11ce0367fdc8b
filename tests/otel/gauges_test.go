package oteltest

import (
	"context"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/nethttplock"
)

// Clients of two processes leave while they wait, handlers panic, leases are lost and end by
// WithMaxHold, requests have several keys, and locks go from one process to the other. Once all
// requests have ended, no lease is active and no request waits.
func TestGaugesReturnToZero(t *testing.T) {
	t.Parallel()
	const clients, calls = 8, 60
	first := newObserved(t, core.WithTTL(time.Second), core.WithCommandTimeout(250*time.Millisecond))
	second := newObserved(t, core.WithTTL(time.Second), core.WithCommandTimeout(250*time.Millisecond), core.WithPrefix(first.prefix))
	var servers []*httptest.Server
	for _, o := range []*observed{first, second} {
		server := httptest.NewUnstartedServer(soakedRoutes(o.locks, func(key string) { first.rdb.Del(context.Background(), first.prefix+key) }))
		server.Config.ErrorLog = log.New(io.Discard, "", 0) // it logs panics
		server.Start()
		t.Cleanup(server.Close)
		servers = append(servers, server)
	}
	var group sync.WaitGroup
	for i := range clients {
		group.Go(func() {
			for range calls {
				soakAtRandom(servers[i%len(servers)])
			}
		})
	}
	group.Wait()
	total := map[string]int64{}
	for i, o := range []*observed{first, second} {
		servers[i].Close()
		if err := o.locks.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
		var series map[string]int64
		suite.Eventually(t, "no lease is active, and no request waits", func() bool {
			series = o.series(t)
			return isZero(series, "reqlock.lease.active") && isZero(series, "reqlock.request.waiting") &&
				sum(series, "reqlock.lease.grants", "") == sum(series, "reqlock.hold.duration", "")
		})
		for name, value := range series {
			total[name] += value
		}
	}
	for _, part := range [][2]string{
		{"reqlock.acquire.duration", "outcome=busy"},
		{"reqlock.acquire.duration", "outcome=canceled"},
		{"reqlock.acquire.duration", "outcome=wait_timeout"},
		{"reqlock.acquire.duration", "outcome=replayed"},
		{"reqlock.lease.grants", "handover=passed"},
		{"reqlock.lease.grants", "handover=handed"},
		{"reqlock.lease.losses", "cause=lost"},
		{"reqlock.lease.losses", "cause=max_hold"},
		{"reqlock.hold.duration", "lost=true"},
		{"reqlock.attempt.endings", "ending=commit"},
		{"reqlock.attempt.endings", "ending=interrupt"},
	} {
		if sum(total, part[0], part[1]) == 0 {
			t.Errorf("there was no %s with %s", part[0], part[1])
		}
	}
}

// isZero reports whether the instrument has series, all of which are zero.
func isZero(series map[string]int64, instrument string) bool {
	found := false
	for name, value := range series {
		if strings.HasPrefix(name, instrument+"{") {
			found = true
			if value != 0 {
				return false
			}
		}
	}
	return found
}

// soakedRoutes returns the routes of a soak. lose deletes a key from Redis.
func soakedRoutes(locks *core.Locker, lose func(key string)) http.Handler {
	mux := http.NewServeMux()
	id := core.Named("account", nethttplock.PathValue("id"))
	route := func(pattern string, handle http.HandlerFunc, opts ...nethttplock.Option) {
		mux.Handle("POST "+pattern, nethttplock.Middleware(locks, id, opts...)(handle))
	}
	work := func(http.ResponseWriter, *http.Request) { time.Sleep(rand.N(2 * time.Millisecond)) }
	untilEnd := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	wait := core.WithWait(300 * time.Millisecond)
	route("/refused/{id}", work)
	route("/waits/{id}", work, wait)
	route("/panics/{id}", func(http.ResponseWriter, *http.Request) { panic("a panic of the test") }, wait)
	route("/both/{id}/{other}", work, wait, nethttplock.Also(core.Named("account", nethttplock.PathValue("other"))))
	route("/long/{id}", untilEnd, wait, core.WithMaxHold(time.Millisecond))
	route("/lost/{id}", func(w http.ResponseWriter, r *http.Request) {
		lose("account:" + r.PathValue("id"))
		untilEnd(w, r)
	}, wait, core.WithMaxHold(2*time.Second))
	payment := core.Named("payment", nethttplock.IdempotencyKey())
	mux.Handle("POST /payments", nethttplock.Idempotent(locks, payment, wait)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if work(w, r); rand.IntN(8) == 0 {
			panic("a panic of the test")
		}
	})))
	return mux
}

// soakAtRandom sends a request of a random kind, for one of a few keys. Its answer does not count.
func soakAtRandom(server *httptest.Server) {
	key, ctx := strconv.Itoa(rand.IntN(3)), context.Background()
	if rand.IntN(4) == 0 { // the client leaves
		short, leave := context.WithTimeout(ctx, rand.N(20*time.Millisecond))
		defer leave()
		ctx = short
	}
	path := []string{"/refused/", "/waits/", "/waits/", "/waits/", "/panics/", "/both/", "/long/", "/payments"}[rand.IntN(8)] + key
	switch {
	case rand.IntN(50) == 0: // a loss is noticed at the next renewal
		path = "/lost/" + key
	case path == "/both/"+key:
		path += "/" + strconv.Itoa(rand.IntN(3))
	case path == "/payments"+key:
		path = "/payments"
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+path, http.NoBody)
	if err != nil {
		panic(err)
	}
	r.Header.Set("Idempotency-Key", strconv.Itoa(rand.IntN(100)))
	if answer, err := server.Client().Do(r); err == nil {
		_ = answer.Body.Close()
	}
}
