package frameworks

import (
	"context"
	"time"

	"github.com/hibiken/asynq"

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
