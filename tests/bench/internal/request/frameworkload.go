package request

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/tests/bench/internal/measure"
	"github.com/reqlock/reqlock/tests/bench/internal/service"
	"github.com/reqlock/reqlock/tests/bench/internal/stack"
	"github.com/reqlock/reqlock/tests/bench/internal/wire"
)

// A FrameworkLoad is a job: clients call a service over loopback, in the same process. Each
// client has its own key, so no client waits.
type FrameworkLoad struct {
	Framework string
	Locked    bool
	Addr      string // of Redis
	Window    time.Duration

	stack *stack.Stack
	site  testService
}

// Kind names the job.
func (*FrameworkLoad) Kind() string { return "framework load" }

// warmUps is the number of calls of each client before the run.
const warmUps = 5

// Prepare starts the service and warms it up.
func (h *FrameworkLoad) Prepare(ctx context.Context) (err error) {
	if h.stack, err = stack.Open(h.Addr, new(wire.Counter)); err != nil {
		return err
	}
	var locks *core.Locker
	if h.Locked {
		locks = h.stack.Locks
	}
	if h.site, err = open(ctx, h.Framework, locks); err != nil {
		return err
	}
	_, err = h.each(func(id string, _ *measure.Histogram) error {
		for range warmUps {
			if err := h.site.call(ctx, id); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}

// Run calls the service until the window has passed, and returns a service.Outcome.
func (h *FrameworkLoad) Run(ctx context.Context, start time.Time) (any, error) {
	time.Sleep(time.Until(start))
	before, err := measure.Used()
	if err != nil {
		return nil, err
	}
	sent := h.stack.Commands.Commands()
	deadline := time.Now().Add(h.Window)
	times, err := h.each(func(id string, times *measure.Histogram) error {
		for began := time.Now(); began.Before(deadline); began = time.Now() {
			if err := h.site.call(ctx, id); err != nil {
				return err
			}
			times.Record(time.Since(began))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	after, err := measure.Used()
	return &service.Outcome{
		Requests: times.Count,
		Times:    times,
		Used:     after.Since(before),
		Commands: h.stack.Commands.Commands() - sent,
	}, err
}

// each calls work for all clients at the same time, and merges their histograms.
func (h *FrameworkLoad) each(work func(id string, times *measure.Histogram) error) (*measure.Histogram, error) {
	return service.Each(clients, func(i int, times *measure.Histogram) error { return work(strconv.Itoa(i), times) })
}

// Close stops the service.
func (h *FrameworkLoad) Close() error {
	var errs []error
	if h.site != nil {
		errs = append(errs, h.site.close())
	}
	return errors.Join(append(errs, h.stack.Close())...)
}
