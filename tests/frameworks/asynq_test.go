package frameworks

import (
	"context"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A task whose account is busy does not wait in its worker. It runs later, and counts no retry.
func TestAsynq(t *testing.T) {
	t.Parallel()
	redisServer := redistest.Reuse(t)
	locks := core.Must(core.New(redisServer.Client(t)))
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
