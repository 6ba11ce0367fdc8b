package idempotent

import (
	"context"
	"errors"
	"time"

	"github.com/reqlock/reqlock/tests/bench/internal/measure"
)

// recordClients is how many clients create records at a time.
const recordClients = 8

// A Records is a job: it sends requests with many keys, whose answers are stored. Its result is how
// many requests have run the handler.
type Records struct {
	Framework string
	Size      int // of each answer
	Count     int
	Addr      string // of Redis

	service *testService
}

// Prepare starts the service.
func (r *Records) Prepare(ctx context.Context) (err error) {
	r.service, err = open(ctx, r.Framework, true, r.Addr, r.Size)
	return err
}

// Run returns the number of answers, or an error if an answer is not stored.
func (r *Records) Run(ctx context.Context, _ time.Time) (any, error) {
	_, err := each(recordClients, func(i int, _ *measure.Histogram) (err error) {
		c, err := newClient(ctx, r.service.addr, i, r.Size)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, c.close()) }()
		for n := i; n < r.Count; n += recordClients {
			if _, err := c.send(first); err != nil {
				return err
			}
		}
		return c.again()
	})
	return r.service.payments.answers.Load(), err
}

// Close ends the service.
func (r *Records) Close() error { return r.service.close() }
