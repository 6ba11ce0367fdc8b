package frameworks

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/hibiken/asynq"
	"github.com/riverqueue/river"

	"github.com/reqlock/reqlock/core"
)

// transferTask returns a handler that runs the tasks of one account one at a time.
func transferTask(locks *core.Locker, transfer func(ctx context.Context, account string) error) asynq.HandlerFunc {
	atOnce := locks.With(core.WithWait(0))
	return func(ctx context.Context, task *asynq.Task) error {
		account := string(task.Payload())
		return atOnce.Do(ctx, "account:"+account, func(ctx context.Context) error {
			return transfer(ctx, account)
		})
	}
}

// asynqConfig returns the configuration of a server whose refused tasks run later.
func asynqConfig() asynq.Config {
	return asynq.Config{
		IsFailure: func(err error) bool { return pauseOf(err) == 0 },
		RetryDelayFunc: func(n int, err error, task *asynq.Task) time.Duration {
			if pause := pauseOf(err); pause > 0 {
				return pause
			}
			return asynq.DefaultRetryDelayFunc(n, err, task)
		},
	}
}

// A transferJob moves money from an account.
type transferJob struct {
	Account string `json:"account"`
}

// Kind implements river.JobArgs.
func (transferJob) Kind() string { return "transfer" }

// A transferWorker runs the jobs of one account one at a time.
type transferWorker struct {
	river.WorkerDefaults[transferJob]
	locks    *core.Locker // a view with core.WithWait(0)
	transfer func(ctx context.Context, account string) error
}

// Work implements river.Worker.
func (w *transferWorker) Work(ctx context.Context, job *river.Job[transferJob]) error {
	account := job.Args.Account
	err := w.locks.Do(ctx, "account:"+account, func(ctx context.Context) error {
		return w.transfer(ctx, account)
	})
	if pause := pauseOf(err); pause > 0 {
		return river.JobSnooze(pause) // no attempt
	}
	return err
}

// pauseOf returns after which time a refused job may run, or 0 if the job has run.
//
//nolint:gosec // the pause is no secret
func pauseOf(err error) time.Duration {
	refusal, _ := core.RefusalOf(err)
	if refusal.RetryAfter == 0 {
		return 0
	}
	return refusal.RetryAfter + rand.N(refusal.RetryAfter) // so that not all come back at once
}
