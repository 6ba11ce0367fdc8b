package readiness

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/redisstore"
)

// A Quorum checks all servers of a quorum. It is made for one Run.
type Quorum struct {
	Registers bool // that of each Check

	checks    []*Check
	duplicate func() error
}

// NewQuorum returns a check of the servers of these clients. Each server is checked as by
// NewCheck, without replicas, and has its own passed. duplicate returns an error if two clients are connected to the
// same server. It is called after the servers have replied.
func NewQuorum(clients []*redis.Client, prefix string, bound time.Duration, passed []Passed, duplicate func() error) *Quorum {
	q := &Quorum{duplicate: duplicate}
	for i, client := range clients {
		q.checks = append(q.checks, NewCheck(client, prefix, bound, redisstore.Replicas{}, &passed[i]))
	}
	return q
}

// Run checks all servers at the same time. It returns an error if a majority of the servers
// fails, or if a server is a duplicate. Otherwise the warnings are the failures and the
// warnings of single servers. An error is a *Finding or wraps one. Exception: it wraps ctx's
// error if ctx ended first.
func (q *Quorum) Run(ctx context.Context) (warnings []error, err error) {
	type result struct {
		warnings []error
		err      error
	}
	results := make([]chan result, len(q.checks))
	for i, check := range q.checks {
		results[i] = make(chan result, 1)
		check.Registers = q.Registers
		go func() { // ends with ctx or earlier
			warnings, err := check.Run(ctx)
			results[i] <- result{warnings, err}
		}()
	}
	var failures []error
	for i := range results {
		r := <-results[i]
		if r.err != nil {
			failures = append(failures, &serverError{i, r.err})
		}
		for _, warning := range r.warnings {
			warnings = append(warnings, &serverError{i, warning})
		}
	}
	if err := q.duplicate(); err != nil {
		return nil, &Finding{text: err.Error(), cause: err}
	}
	if len(failures) > len(q.checks)/2 {
		return nil, failures[0]
	}
	return append(failures, warnings...), nil
}

// Close waits for the commands that Run has abandoned.
func (q *Quorum) Close() {
	for _, check := range q.checks {
		check.Close()
	}
}

// A serverError is the failure or the warning of one server of a quorum.
type serverError struct {
	server int // the index among the clients
	err    error
}

func (e *serverError) Error() string {
	return fmt.Sprintf("server %d of the quorum: %s", e.server, e.err.Error())
}

func (e *serverError) Unwrap() error { return e.err }
