package idempotent

import (
	"context"
	"errors"
	"time"

	"github.com/reqlock/reqlock/tests/bench/internal/measure"
	"github.com/reqlock/reqlock/tests/bench/internal/service"
)

// recorders is how many clients make records at a time.
const recorders = 8

// A Records is a job: it sends requests with so many keys, whose answers are
// kept.
type Records struct {
	Framework string
	Answer    int // how many bytes each answer has
	Records   int
	Addr      string // of Redis

	site *site
}

// A RecordsOutcome is what a Records has seen.
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

// Run returns a RecordsOutcome. It is an error if an answer is not kept.
func (r *Records) Run(ctx context.Context, _ time.Time) (any, error) {
	_, err := service.Each(min(recorders, r.Records), func(i int, _ *measure.Histogram) (err error) {
		c, err := newClient(ctx, r.site.addr, i, r.Answer)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, c.close()) }()
		for n := i; n < r.Records; n += recorders {
			if _, err := c.send(First); err != nil {
				return err
			}
		}
		return c.again()
	})
	return &RecordsOutcome{Handled: r.site.desk.answers.Load()}, err
}

// Close ends the service.
func (r *Records) Close() error { return r.site.close() }
