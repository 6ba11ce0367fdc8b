package idempotent

import (
	"context"
	"errors"
	"time"

	"github.com/reqlock/reqlock/tests/bench/internal/measure"
	"github.com/reqlock/reqlock/tests/bench/internal/service"
)

// recordClients is how many clients create records at a time.
const recordClients = 8

// A Records is a job: it sends requests with many keys, whose answers are stored.
type Records struct {
	Framework string
	Answer    int // the size of each answer
	Records   int
	Addr      string // of Redis

	site *testService
}

// A RecordsOutcome is the result of a Records.
type RecordsOutcome struct {
	Handled int64
}

// Kind names the job.
func (*Records) Kind() string { return "idempotency records" }

// Prepare starts the service.
func (r *Records) Prepare(ctx context.Context) (err error) {
	r.site, err = open(ctx, r.Framework, true, r.Addr, r.Answer)
	return err
}

// Run returns a RecordsOutcome, or an error if an answer is not stored.
func (r *Records) Run(ctx context.Context, _ time.Time) (any, error) {
	_, err := service.Each(min(recordClients, r.Records), func(i int, _ *measure.Histogram) (err error) {
		c, err := newClient(ctx, r.site.addr, i, r.Answer)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, c.close()) }()
		for n := i; n < r.Records; n += recordClients {
			if _, err := c.send(First); err != nil {
				return err
			}
		}
		return c.again()
	})
	return &RecordsOutcome{Handled: r.site.payments.answers.Load()}, err
}

// Close ends the service.
func (r *Records) Close() error { return r.site.close() }
