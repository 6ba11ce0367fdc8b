package idempotent

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/bench/internal/redisserver"
	"github.com/reqlock/reqlock/tests/bench/internal/service"
)

func TestMain(m *testing.M) {
	suite.Main(m, // fasthttp leaves these goroutines asleep, one of them for ever
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"))
}

// Each case of each load runs on each framework, shortly.
func TestCases(t *testing.T) {
	redis := redisserver.Start(t)
	for _, load := range Loads() {
		for _, which := range load.Cases() {
			for _, framework := range Frameworks() {
				t.Run(load.Name+" "+string(which)+" "+framework, func(t *testing.T) {
					r := &Requests{
						Framework: framework, Case: which, Callers: load.Callers, OneKey: load.OneKey,
						Addr: redis.Addr, Window: 5 * time.Millisecond,
					}
					o := run(t, r).(*service.Outcome)
					if o.Requests < int64(load.Callers) || o.Times.Count != o.Requests {
						t.Errorf("%d requests, and the times of %d", o.Requests, o.Times.Count)
					}
					if which == Plain && o.Commands != 0 || which == First && o.Commands < 2*o.Requests || o.Commands > 4*o.Requests {
						t.Errorf("%d commands for %d requests", o.Commands, o.Requests)
					}
					_, keys, err := redis.MeasureMemory(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					if want := keysOf(load, which, o.Requests); keys != want {
						t.Errorf("%d keys in Redis, want %d", keys, want)
					}
				})
			}
		}
	}
}

// keysOf returns the number of records that a case leaves.
func keysOf(load Load, which Case, requests int64) int64 {
	callers := int64(load.Callers)
	switch {
	case which == Plain:
		return 0
	case which == First:
		return requests + callers*(1+warmUps)
	case load.OneKey:
		return 1
	default:
		return callers
	}
}

// A job is the interface of the jobs of this package.
type job interface {
	Prepare(ctx context.Context) error
	Run(ctx context.Context, start time.Time) (any, error)
	Close() error
}

// run runs a job like a child, and returns its result, which must be valid as JSON.
func run(t *testing.T, j job) any {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer func() {
		cancel() // like a child whose parent has received everything
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := j.Prepare(ctx); err != nil {
		t.Fatal(err)
	}
	result, err := j.Run(ctx, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := json.Marshal(result); err != nil {
		t.Fatal(err)
	}
	return result
}

func TestRecordsAreMade(t *testing.T) {
	redis := redisserver.Start(t)
	for _, framework := range RecordFrameworks() {
		for _, answer := range Answers() {
			for _, records := range []int{1, 20} {
				if err := redis.Clear(t.Context()); err != nil {
					t.Fatal(err)
				}
				o := run(t, &Records{Framework: framework, Answer: answer, Records: records, Addr: redis.Addr}).(*RecordsOutcome)
				bytes, keys, err := redis.MeasureMemory(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if want := int64(records); o.Handled != want || keys != want || bytes < want*int64(answer) {
					t.Errorf("%s: %d answers of %d bytes: %d handled, %d keys, %d bytes", framework, records, answer, o.Handled, keys, bytes)
				}
			}
		}
	}
}

// Without its middleware, a service replays nothing and stores nothing: the jobs must
// report an error.
func TestABrokenCaseGivesNoFigure(t *testing.T) {
	redis := redisserver.Start(t)
	for _, framework := range Frameworks() {
		for which, want := range map[Case]string{Replay: "the replay is", First: "the answer was not kept"} {
			t.Run(framework+" "+string(which), func(t *testing.T) {
				r := &Requests{Framework: framework, Case: Plain, Callers: 2, Addr: redis.Addr, Window: time.Millisecond}
				if err := r.Prepare(t.Context()); err != nil {
					t.Fatal(err)
				}
				defer func() {
					if err := r.Close(); err != nil {
						t.Error(err)
					}
				}()
				r.Case = which
				if _, err := r.Run(t.Context(), time.Now()); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("without the middleware: %v", err)
				}
			})
		}
	}
}

func TestVerifyCountsTheHandler(t *testing.T) {
	for _, c := range []struct {
		which             Case
		requests, handled int64
		right             bool
	}{
		{Plain, 10, 10, true},
		{Plain, 10, 9, false},
		{First, 10, 10, true},
		{First, 10, 9, false},
		{First, 10, 11, false},
		{Replay, 10, 0, true},
		{Replay, 10, 1, false},
	} {
		r := &Requests{Case: c.which}
		if err := r.verify(c.requests, c.handled); (err == nil) != c.right {
			t.Errorf("%s: %d requests, %d handled: %v", c.which, c.requests, c.handled, err)
		}
	}
}

func TestAnswersHaveTheirSizeAndANumber(t *testing.T) {
	for _, size := range append(Answers(), smallestAnswer) {
		h := newPaymentHandler(size)
		one, other := h.answer(), h.answer()
		if len(one) != size || len(other) != size || string(one) == string(other) || !json.Valid(one) {
			t.Errorf("%d bytes: %s and %s", size, one, other)
		}
	}
}

func TestEqualAnswers(t *testing.T) {
	first := answer{201, "application/json", []byte("{}")}
	for _, c := range []struct {
		replay answer
		equal  bool
	}{
		{answer{201, "application/json", []byte("{}")}, true},
		{answer{200, "application/json", []byte("{}")}, false},
		{answer{201, "text/plain", []byte("{}")}, false},
		{answer{201, "application/json", []byte("[]")}, false},
	} {
		if err := c.replay.mustEqual(first); (err == nil) != c.equal {
			t.Errorf("%v is equal to %v: %v", c.replay, first, err)
		}
	}
}
