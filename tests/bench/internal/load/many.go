package load

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/reqlock/reqlock/tests/bench/internal/lock"
	"github.com/reqlock/reqlock/tests/bench/internal/measure"
)

const (
	// phaseTime bounds the time in which all keys are taken, released or granted. A key that comes
	// later has starved.
	phaseTime = 10 * time.Second
	// settleStep is how often waiters are checked, and settleTime how long they may take until all
	// wait. Locks that poll take that long.
	settleStep, settleTime = 200 * time.Millisecond, 4 * time.Second
)

// Phases are the result of a process with many keys.
type Phases struct {
	Begin, Idle, End Phase
	Memory           int64 // of all keys, while nothing happens
}

// A Phase is what the process used in a phase.
type Phase struct {
	Took, CPU time.Duration
	Commands  int64
}

// runMany takes all keys, holds them while nothing else happens, and releases them. The second of two
// processes instead requests all keys of the first one, waits while nothing happens, and gets them
// when the first one releases them.
func (j *Job) runMany(ctx context.Context, start time.Time) (_ *Outcome, err error) {
	time.Sleep(time.Until(start))
	o := &Outcome{Waits: measure.NewHistogram()}
	if j.holdsForOther() {
		_, missed := j.memory.Await(ctx, j.Processes, 1)
		return o, errors.Join(missed, j.release(ctx))
	}
	begin, end := j.take, j.release
	if j.Process > 0 {
		begin, end = j.waiters(o)
	}
	empty := inUse()
	begun, err := j.phase(ctx, begin)
	if err != nil {
		return nil, err
	}
	full := inUse()
	idle, _ := j.phase(ctx, func(context.Context) error { time.Sleep(j.Window); return nil })
	ended, err := j.phase(ctx, end)
	o.Phases = &Phases{begun, idle, ended, full - empty}
	o.Acquired = j.served.Load()
	o.Starved = int64(j.Keys) - o.Acquired - int64(len(o.Faults))
	return o, err
}

// holdsForOther reports whether the process only holds the keys for which another one waits.
func (j *Job) holdsForOther() bool { return j.Keys > 0 && j.Processes > 1 && j.Process == 0 }

// inUse returns the memory that this process uses.
func inUse() int64 {
	runtime.GC()
	runtime.GC() // what the pools of the first one kept
	return measure.Used().Memory
}

// phase does the work of a phase, and returns what it costs.
func (j *Job) phase(ctx context.Context, work func(context.Context) error) (Phase, error) {
	before, began := j.costs(), time.Now()
	err := work(ctx)
	took, after := time.Since(began), j.costs()
	return Phase{took, after.used.CPU - before.used.CPU, after.commands - before.commands}, err
}

// take takes all keys. Some locks end with their context, and some wait for it after a fault.
func (j *Job) take(ctx context.Context) error {
	j.held = make([]lock.Held, j.Keys)
	ctx, j.giveUp = context.WithTimeout(ctx, 4*phaseTime)
	return j.eachKey(func(i int) (err error) {
		if j.held[i], err = j.locks[0].Lock(ctx, ownKey(0, i)); ctx.Err() != nil {
			return nil
		}
		return err
	})
}

// release releases all keys that were taken.
func (j *Job) release(ctx context.Context) error {
	return j.eachKey(func(i int) error {
		if j.held[i] == nil {
			return nil
		}
		j.served.Add(1)
		return j.held[i].Release(ctx)
	})
}

// eachKey calls work for all keys that it reaches in time, and returns an error if one fails. Some
// locks are so busy with the renewal of very many keys that they would take minutes.
func (j *Job) eachKey(work func(i int) error) error {
	errs, end := make([]error, j.Goroutines), time.Now().Add(phaseTime)
	j.each(func(g int) {
		for i := g; i < j.Keys && time.Now().Before(end); i += j.Goroutines {
			errs[g] = cmp.Or(errs[g], work(i))
		}
	})
	return cmp.Or(errs...)
}

// waiters returns two phases: a goroutine for each key begins to wait, and all get their keys.
func (j *Job) waiters(o *Outcome) (begin, end func(context.Context) error) {
	var (
		group sync.WaitGroup
		mu    sync.Mutex
	)
	begin = func(ctx context.Context) error {
		for i := range j.Keys {
			group.Go(func() {
				ctx, cancel := context.WithTimeout(ctx, settleTime+j.Window+phaseTime)
				defer cancel()
				if err := j.lockOnce(ctx, 0, ownKey(0, i)); err == nil {
					j.served.Add(1)
				} else if ctx.Err() == nil {
					mu.Lock()
					defer mu.Unlock()
					o.Faults = append(o.Faults, err.Error())
				}
			})
		}
		j.settle()
		return nil
	}
	end = func(ctx context.Context) error {
		_, err := j.memory.Await(ctx, j.Processes, 1)
		group.Wait()
		return err
	}
	return begin, end
}

// settle returns when this process sends next to no commands, since all its goroutines wait.
func (j *Job) settle() {
	for end := time.Now().Add(settleTime); time.Now().Before(end); {
		before := j.commands.Commands()
		time.Sleep(settleStep)
		if j.commands.Commands()-before <= int64(j.Keys/100) {
			return
		}
	}
}
