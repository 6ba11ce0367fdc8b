package service

import (
	"cmp"
	"sync"

	"github.com/reqlock/reqlock/tests/bench/internal/measure"
)

// Each calls work for n clients at the same time, and merges their histograms. It returns
// the error of the first client that failed.
func Each(n int, work func(client int, times *measure.Histogram) error) (*measure.Histogram, error) {
	var (
		clients sync.WaitGroup
		errs    = make([]error, n)
		times   = make([]*measure.Histogram, n)
	)
	for i := range n {
		times[i] = measure.NewHistogram()
		clients.Go(func() { errs[i] = work(i, times[i]) })
	}
	clients.Wait()
	for _, other := range times[1:] {
		times[0].Merge(other)
	}
	return times[0], cmp.Or(errs...)
}
