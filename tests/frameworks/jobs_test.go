package frameworks

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
	_ "modernc.org/sqlite" // the driver of the database

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A task whose account is busy does not wait in its worker. It runs later, and counts no retry.
func TestAsynq(t *testing.T) {
	t.Parallel()
	redisServer := redistest.Reuse(t)
	locks := core.Must(core.New(redisServer.Client(t), core.WithCommandTimeout(4*time.Second)))
	defer func() { _ = locks.Close(context.Background()) }()
	held, err := locks.TryLock(t.Context(), "account:42")
	if err != nil {
		t.Fatal(err)
	}

	connect := asynq.RedisClientOpt{Addr: redisServer.Addr()}
	retried, config := make(chan int, 1), asynqConfig()
	config.Concurrency, config.LogLevel, config.DelayedTaskCheckInterval = 2, asynq.FatalLevel, 100*time.Millisecond
	server, inspector := asynq.NewServer(connect, config), asynq.NewInspector(connect)
	defer func() { _ = inspector.Close() }()
	handler := transferTask(locks, func(ctx context.Context, _ string) error {
		n, _ := asynq.GetRetryCount(ctx)
		retried <- n
		return nil
	})
	if err := server.Start(handler); err != nil {
		t.Fatal(err)
	}
	defer server.Shutdown()
	client := asynq.NewClient(connect)
	defer func() { _ = client.Close() }()
	task, err := client.Enqueue(asynq.NewTask("transfer", []byte("42")))
	if err != nil {
		t.Fatal(err)
	}
	var refused *asynq.TaskInfo
	suite.Eventually(t, "the task is refused", func() bool {
		refused, err = inspector.GetTaskInfo(task.Queue, task.ID)
		return err == nil && refused.State == asynq.TaskStateRetry
	})
	if pause := time.Until(refused.NextProcessAt); pause > 2*time.Second {
		t.Errorf("the task is to run in %v", pause)
	}
	last, err := client.Enqueue(asynq.NewTask("transfer", []byte("42")), asynq.MaxRetry(0))
	if err != nil {
		t.Fatal(err)
	}
	suite.Eventually(t, "the task without a retry is archived", func() bool {
		info, err := inspector.GetTaskInfo(last.Queue, last.ID)
		return err == nil && info.State == asynq.TaskStateArchived
	})
	if err := held.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := suite.Receive(t, "the task runs", retried); n != 0 {
		t.Errorf("the refusal counts as %d retries", n)
	}
}

// startRiver starts a client on an SQLite database, with two workers.
func startRiver(t *testing.T, worker *transferWorker) *river.Client[*sql.Tx] {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "jobs.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	driver := riversqlite.New(db)
	migrator, err := rivermigrate.New(driver, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := migrator.Migrate(t.Context(), rivermigrate.DirectionUp, nil); err != nil {
		t.Fatal(err)
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, worker)
	client, err := river.NewClient(driver, &river.Config{
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 2}}, Workers: workers,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Start(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Stop(context.Background()) })
	return client
}

// A job whose account is busy does not wait in its worker. It runs later, in its first attempt.
func TestRiver(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	client := startRiver(t, &transferWorker{
		locks:    locks.With(core.WithWait(0)),
		transfer: func(context.Context, string) error { return nil },
	})
	events, cancel := client.Subscribe(river.EventKindJobSnoozed, river.EventKindJobCompleted, river.EventKindJobFailed)
	defer cancel()
	release := locks.Hold("account:42")
	if _, err := client.Insert(t.Context(), transferJob{Account: "42"}, nil); err != nil {
		t.Fatal(err)
	}
	first := suite.Receive(t, "the job is snoozed", events)
	release()
	second := suite.Receive(t, "the job is done", events)
	if first.Kind != river.EventKindJobSnoozed || second.Kind != river.EventKindJobCompleted || second.Job.Attempt != 1 {
		t.Errorf("%s, then %s in attempt %d", first.Kind, second.Kind, second.Job.Attempt)
	}
	if pause := first.Job.ScheduledAt.Sub(*first.Job.AttemptedAt); pause < time.Second {
		t.Errorf("the job is snoozed for %v", pause)
	}
}

// A job that loses its lock has the end of its context as its error, and that attempt counts.
func TestRiverJobThatLosesItsLock(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t, core.WithTTL(time.Second))
	client := startRiver(t, &transferWorker{
		locks: locks.With(core.WithWait(0)),
		transfer: func(ctx context.Context, account string) error {
			locks.Expire("account:" + account)
			<-ctx.Done()
			return context.Cause(ctx)
		},
	})
	events, cancel := client.Subscribe(river.EventKindJobSnoozed, river.EventKindJobCompleted, river.EventKindJobFailed)
	defer cancel()
	if _, err := client.Insert(t.Context(), transferJob{Account: "42"}, nil); err != nil {
		t.Fatal(err)
	}
	got := suite.Receive(t, "the job fails", events)
	if got.Kind != river.EventKindJobFailed || len(got.Job.Errors) != 1 || got.Job.Errors[0].Error != core.ErrLost.Error() {
		t.Errorf("%s: %v", got.Kind, got.Job.Errors)
	}
}
