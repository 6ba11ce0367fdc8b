package lock

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/alicebob/miniredis/v2"
	redisv8 "github.com/go-redis/redis/v8"
	"github.com/hibiken/asynq"
	"github.com/hibiken/asynq/x/rate"
)

// asynqTasks is how many tasks run in a process, and so how many of its goroutines can ask
// for a permit at a time. No suite has more.
const asynqTasks = 128

// An asynqSemaphore is the semaphore of github.com/hibiken/asynq/x/rate. Only a task of
// asynq can have a permit, under the id of the task. So a server of asynq runs tasks that do
// nothing until Close, and each lock borrows one of them. The tasks have a Redis of their own
// within the process, so that the measured one gets the commands of the semaphore only.
type asynqSemaphore struct {
	client  redisv8.UniversalClient
	permits int
	redis   *miniredis.Miniredis
	server  *asynq.Server
	tasks   chan context.Context // of the tasks that no lock has borrowed
	closing chan struct{}
}

func openAsynq(c Config) (Locker, error) {
	s := &asynqSemaphore{
		client: redisv8.NewUniversalClient(&redisv8.UniversalOptions{
			Addrs: c.Addrs,
			Dialer: func(ctx context.Context, _, addr string) (net.Conn, error) {
				return c.Commands.Dial(ctx, new(net.Dialer), addr)
			},
		}),
		permits: max(1, c.Permits),
		tasks:   make(chan context.Context, asynqTasks),
		closing: make(chan struct{}),
	}
	if err := s.startTasks(); err != nil {
		return nil, errors.Join(err, s.client.Close())
	}
	return s, nil
}

// startTasks starts the tasks.
func (s *asynqSemaphore) startTasks() (err error) {
	if s.redis, err = miniredis.Run(); err != nil {
		return err
	}
	connect := asynq.RedisClientOpt{Addr: s.redis.Addr()}
	tasks := asynq.NewClient(connect)
	defer func() { err = errors.Join(err, tasks.Close()) }()
	for range asynqTasks {
		if _, err := tasks.Enqueue(asynq.NewTask("hold", nil)); err != nil {
			return fmt.Errorf("asynq: enqueue a task: %w", err)
		}
	}
	s.server = asynq.NewServer(connect, asynq.Config{Concurrency: asynqTasks, LogLevel: asynq.FatalLevel})
	return s.server.Start(asynq.HandlerFunc(func(ctx context.Context, _ *asynq.Task) error {
		s.tasks <- ctx
		<-s.closing
		return nil
	}))
}

// Lock implements Locker.
func (s *asynqSemaphore) Lock(ctx context.Context, key string) (Held, error) { //nolint:contextcheck // the task's context names the holder
	held := asynqHeld{from: s, semaphore: rate.NewSemaphore(connectedTo{s.client}, key, s.permits)}
	select {
	case held.task = <-s.tasks:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	expiring, cancel := context.WithTimeout(held.task, TTL) // the deadline of the permit
	defer cancel()
	got, err := poll(ctx, held, func() (bool, error) { return held.semaphore.Acquire(expiring) })
	if err != nil {
		s.tasks <- held.task
	}
	return got, err
}

// connectedTo makes a semaphore use a client that there is already.
type connectedTo struct{ client redisv8.UniversalClient }

// MakeRedisClient implements asynq.RedisConnOpt.
func (c connectedTo) MakeRedisClient() any { return c.client }

// Close implements Locker.
func (s *asynqSemaphore) Close() error {
	close(s.closing)
	s.server.Shutdown()
	s.redis.Close()
	return s.client.Close()
}

// An asynqHeld is the permit of a task.
type asynqHeld struct {
	from      *asynqSemaphore
	semaphore *rate.Semaphore
	task      context.Context //nolint:containedctx // it is the name of the holder
}

// Release implements Held.
func (h asynqHeld) Release(context.Context) error {
	err := h.semaphore.Release(h.task) //nolint:contextcheck // it names the holder
	h.from.tasks <- h.task
	return err
}
