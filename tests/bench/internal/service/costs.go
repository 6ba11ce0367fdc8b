package service

import (
	"context"
	"time"

	"github.com/reqlock/reqlock/tests/bench/internal/jobprocess"
	"github.com/reqlock/reqlock/tests/bench/internal/measure"
	"github.com/reqlock/reqlock/tests/bench/internal/runner"
)

// An Outcome is the result of a job that calls a service in the same process. Its costs
// include service and clients.
type Outcome struct {
	Requests int64
	Times    *measure.Histogram
	Used     measure.Usage
	Commands int64 // sent to Redis
}

// Costs are the costs of service and clients, and of Redis: times in microseconds, and CPU,
// allocations and commands for each request.
type Costs struct {
	RequestsPerSecond                          float64
	TimeP50, TimeP99                           float64
	CPU, ServerCPU, Allocations, RedisCommands float64
}

// Measure runs a job of one window that returns an Outcome, and returns the costs of its
// requests.
func Measure(ctx context.Context, l *runner.Runner, job jobprocess.Job, window time.Duration, profile func(child int) string) (Costs, error) {
	before, err := l.Server.Used(ctx)
	if err != nil {
		return Costs{}, err
	}
	outcomes, err := jobprocess.Run[Outcome](ctx, []jobprocess.Job{job}, jobprocess.Options{
		Begin: func() (err error) {
			before, err = l.Server.Used(ctx)
			return err
		},
		Profile: profile,
	})
	if err != nil {
		return Costs{}, err
	}
	after, err := l.Server.Used(ctx)
	if err != nil {
		return Costs{}, err
	}
	o := outcomes[0]
	each := func(n float64) float64 { return n / float64(o.Requests) }
	return Costs{
		RequestsPerSecond: float64(o.Requests) / window.Seconds(),
		TimeP50:           micros(o.Times.Quantile(0.50)),
		TimeP99:           micros(o.Times.Quantile(0.99)),
		CPU:               each(micros(o.Used.CPU)),
		ServerCPU:         each(micros(after.Since(before).CPU)),
		Allocations:       each(float64(o.Used.Allocations)),
		RedisCommands:     each(float64(o.Commands)),
	}, nil
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
