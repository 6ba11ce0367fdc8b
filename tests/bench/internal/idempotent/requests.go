package idempotent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/reqlock/reqlock/tests/bench/internal/measure"
)

// The cases of a request.
const (
	plain  = "plain"  // the handler alone
	first  = "first"  // the middleware with a new key
	replay = "replay" // the middleware with a key whose answer is stored
	copied = "GET"    // a handler that copies the stored answer, and checks nothing: the limit of a replay
)

const (
	// smallAnswer is the size of the answers in runs that measure time.
	smallAnswer = 200
	// warmUps is the number of calls of each client before the run.
	warmUps = 5
)

// A Requests is a job: clients send requests of one case to a service in the same process.
type Requests struct {
	Framework string
	Case      string
	Clients   int
	OneKey    bool   // all clients send one key, instead of keys of their own
	Size      int    // of the answers
	Addr      string // of Redis
	Window    time.Duration
	Count     int // of each client's requests, instead of a window

	service *testService
	clients []*client
}

// An Outcome is the result of a Requests. What was used includes service and clients.
type Outcome struct {
	Times    *measure.Histogram
	Used     measure.Usage
	Commands int64 // sent to Redis
	Answers  int64 // of the handler, since the service began
}

// Prepare starts the service, warms it up, and sends the requests that will be replayed.
func (r *Requests) Prepare(ctx context.Context) (err error) {
	if r.service, err = open(ctx, r.Framework, r.Case, r.Addr, r.Size); err != nil {
		return err
	}
	for i := range r.Clients {
		if r.OneKey {
			i = 0
		}
		c, err := newClient(ctx, r.service.addr, i, r.Size)
		if err != nil {
			return err
		}
		r.clients = append(r.clients, c)
		if err := c.begin(); err != nil {
			return err
		}
	}
	_, err = each(r.Clients, func(i int, _ *measure.Histogram) error {
		for range warmUps {
			if _, err := r.clients[i].send(r.Case); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}

// Run sends requests until the window has passed, or as many as told, and returns an Outcome. It returns an error if a
// replay has run the handler, if another request has not, or if the answer of a first request is
// not stored.
func (r *Requests) Run(_ context.Context, start time.Time) (any, error) {
	time.Sleep(time.Until(start))
	before := measure.Used()
	sent, handled := r.service.commands.Commands(), r.service.payments.answers.Load()
	deadline := time.Now().Add(r.Window)
	times, err := each(r.Clients, func(i int, times *measure.Histogram) error {
		for n := 1; ; n++ { // at least once
			took, err := r.clients[i].send(r.Case)
			if err != nil {
				return err
			}
			times.Record(took)
			if n == r.Count || r.Count == 0 && !time.Now().Before(deadline) {
				return nil
			}
		}
	})
	if err != nil {
		return nil, err
	}
	outcome := &Outcome{times, measure.Used().Since(before), r.service.commands.Commands() - sent, r.service.payments.answers.Load()}
	return outcome, r.verify(times.Count, outcome.Answers-handled)
}

// verify returns an error unless the expected number of requests has run the handler.
func (r *Requests) verify(requests, handled int64) error {
	want := requests
	if r.Case == replay || r.Case == copied {
		want = 0
	}
	if handled != want {
		return fmt.Errorf("of %d requests of the case %q %d have run the handler", requests, r.Case, handled)
	}
	if r.Case != first {
		return nil
	}
	for _, c := range r.clients {
		if err := c.again(); err != nil {
			return fmt.Errorf("the answer was not kept: %w", err)
		}
	}
	return nil
}

// Close ends the service and its clients.
func (r *Requests) Close() error {
	var errs []error
	for _, c := range r.clients {
		errs = append(errs, c.close())
	}
	return errors.Join(append(errs, r.service.close())...)
}

// each calls work for n clients at the same time, and merges their histograms. It returns the error
// of the first client that failed.
func each(n int, work func(client int, times *measure.Histogram) error) (*measure.Histogram, error) {
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
