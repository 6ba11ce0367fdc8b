// Package lockbench holds what the benchmarks of all adapters share.
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

// Locker returns a Locker on the Redis of an address, which is closed with the
// benchmark. Where nothing is locked, nothing needs to be there.
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

// OnEachServer runs serve, under its name, on an embedded Redis and on a real
// one, each time beside the lock alone.
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

// Sink returns a ResponseWriter that costs nothing.
func Sink() http.ResponseWriter { return sink{http.Header{}} }

type sink struct{ header http.Header }

// Header returns headers that nobody sends.
func (s sink) Header() http.Header { return s.header }

// Write takes everything and keeps nothing.
func (s sink) Write(p []byte) (int, error) { return len(p), nil }

// WriteHeader does nothing.
func (s sink) WriteHeader(int) {}
