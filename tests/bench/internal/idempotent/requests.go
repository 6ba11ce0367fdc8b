package idempotent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/reqlock/reqlock/tests/bench/internal/measure"
	"github.com/reqlock/reqlock/tests/bench/internal/service"
)

// smallAnswer is the size of the answers in runs that measure time.
const smallAnswer = 200

// A Requests is a job: callers send requests of one case to a service in the same process.
type Requests struct {
	Framework string
	Case      Case
	Callers   int
	OneKey    bool
	Addr      string // of Redis
	Window    time.Duration

	site    *testService
	clients []*client
}

// Kind names the job.
func (*Requests) Kind() string { return "idempotent requests" }

// warmUps is the number of calls of each caller before the run.
const warmUps = 5

// Prepare starts the service, warms it up, and sends the requests that will be replayed.
func (r *Requests) Prepare(ctx context.Context) (err error) {
	if r.site, err = open(ctx, r.Framework, r.Case != Plain, r.Addr, smallAnswer); err != nil {
		return err
	}
	for i := range r.Callers {
		if r.OneKey {
			i = 0
		}
		c, err := newClient(ctx, r.site.addr, i, smallAnswer)
		if err != nil {
			return err
		}
		r.clients = append(r.clients, c)
		if err := c.begin(); err != nil {
			return err
		}
	}
	_, err = service.Each(r.Callers, func(i int, _ *measure.Histogram) error {
		for range warmUps {
			if _, err := r.clients[i].send(r.Case); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}

// Run sends requests until the window has passed, and returns a service.Outcome. It returns
// an error if a replay has run the handler, if another request has not, or if the answer of
// a first request is not stored.
func (r *Requests) Run(_ context.Context, start time.Time) (any, error) {
	time.Sleep(time.Until(start))
	before, err := measure.Used()
	if err != nil {
		return nil, err
	}
	sent, handled := r.site.commands.Commands(), r.site.payments.answers.Load()
	deadline := time.Now().Add(r.Window)
	times, err := service.Each(r.Callers, func(i int, times *measure.Histogram) error {
		for { // at least once
			took, err := r.clients[i].send(r.Case)
			if err != nil {
				return err
			}
			times.Record(took)
			if !time.Now().Before(deadline) {
				return nil
			}
		}
	})
	if err != nil {
		return nil, err
	}
	after, err := measure.Used()
	if err != nil {
		return nil, err
	}
	outcome := &service.Outcome{
		Requests: times.Count,
		Times:    times,
		Used:     after.Since(before),
		Commands: r.site.commands.Commands() - sent,
	}
	return outcome, r.verify(times.Count, r.site.payments.answers.Load()-handled)
}

// verify returns an error unless the expected number of requests has run the handler.
func (r *Requests) verify(requests, handled int64) error {
	switch {
	case r.Case == Replay && handled != 0:
		return fmt.Errorf("%s: of %d replays %d have run the handler", r.Framework, requests, handled)
	case r.Case != Replay && handled != requests:
		return fmt.Errorf("%s: of %d %s requests %d have run the handler", r.Framework, requests, r.Case, handled)
	case r.Case != First:
		return nil
	}
	for _, c := range r.clients {
		if err := c.again(); err != nil {
			return fmt.Errorf("%s: the answer was not kept: %w", r.Framework, err)
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
	return errors.Join(append(errs, r.site.close())...)
}
