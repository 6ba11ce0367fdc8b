package core_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// BenchmarkShared measures one shared lock and its release by one goroutine, while so many
// other shared locks of the key are held in the process.
func BenchmarkShared(b *testing.B) {
	for _, others := range []int{0, 1, 100, 1000} {
		b.Run(strconv.Itoa(others), func(b *testing.B) {
			all := core.Must(core.New(redistest.Start(b).Client(b)))
			defer func() { _ = all.Close(context.Background()) }()
			locks := all.With(core.WithShared(true))
			for range others {
				lease, err := locks.Lock(context.Background(), "k")
				if err != nil {
					b.Fatal(err)
				}
				defer func() { _ = lease.Release(context.Background()) }()
			}
			benchmarkLocks(b, locks)
		})
	}
}

// BenchmarkPermitHandoff measures one hand-off of five permits for which many goroutines
// wait.
func BenchmarkPermitHandoff(b *testing.B) {
	all := core.Must(core.New(redistest.Start(b).Client(b)))
	defer func() { _ = all.Close(context.Background()) }()
	locks := all.With(core.WithPermits(5))
	benchmarkHandoffs(b, locks)
}
