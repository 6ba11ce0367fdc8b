package frameworks

import (
	"context"

	"github.com/riverqueue/river"

	"github.com/reqlock/reqlock/core"
)

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
