// Package lockbench has the helpers that the benchmarks of all adapters share.
package lockbench

import (
	"context"
	"net/http"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// Locker returns a Locker on the Redis at an address, which is closed with the benchmark. A
// benchmark that locks nothing needs no Redis at the address.
func Locker(b *testing.B, addr string) *core.Locker {
	b.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	locks := core.Must(core.New(rdb))
	b.Cleanup(func() {
		_ = locks.Close(context.Background())
		_ = rdb.Close()
	})
	return locks
}

// OnEachServer runs serve as a benchmark with this name, on an embedded Redis and on a real
// one. On each it also runs a benchmark of the lock alone.
func OnEachServer(b *testing.B, name string, serve func(b *testing.B, locks *core.Locker)) {
	b.Helper()
	for _, server := range []struct {
		name  string
		start func(*testing.B) string
	}{
		{"miniredis", func(b *testing.B) string { return miniredis.RunT(b).Addr() }},
		{"redis", func(b *testing.B) string { return redistest.Start(b).Addr() }},
	} {
		b.Run(server.name+"/lock alone", func(b *testing.B) {
			locks := Locker(b, server.start(b))
			b.ReportAllocs()
			for b.Loop() {
				lease, err := locks.TryLock(b.Context(), "42")
				if err != nil {
					b.Fatal(err)
				}
				_ = lease.Release(b.Context())
			}
		})
		b.Run(server.name+"/"+name, func(b *testing.B) { serve(b, Locker(b, server.start(b))) })
	}
}

// Sink returns a ResponseWriter that discards the response.
func Sink() http.ResponseWriter { return sink{http.Header{}} }

type sink struct{ header http.Header }

// Header returns headers that are not sent.
func (s sink) Header() http.Header { return s.header }

// Write discards p.
func (s sink) Write(p []byte) (int, error) { return len(p), nil }

// WriteHeader does nothing.
func (s sink) WriteHeader(int) {}
