package campaign

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"sync"

	"github.com/reqlock/reqlock/tests/faults/internal/fault"
)

// A campaign is some runs under way. It is safe for concurrent use.
type campaign struct {
	settings Settings
	play     func(ctx context.Context, r Run) *Report // one run

	mu    sync.Mutex
	w     io.Writer
	table Table
	bad   bool // something was found, or went wrong
}

// run plays the runs, those on a server alone side by side, until all are done, or
// ctx ends.
func (c *campaign) run(ctx context.Context, runs []Run, more func() bool) {
	var alone, others []Run
	for _, r := range runs {
		if r.On == fault.OnServer {
			alone = append(alone, r)
		} else {
			others = append(others, r)
		}
	}
	c.share(ctx, alone, c.settings.Parallel, more)
	c.share(ctx, others, 1, more)
}

// share shares the runs among so many who play them, as long as there are more to
// play.
func (c *campaign) share(ctx context.Context, runs []Run, players int, more func() bool) {
	next := make(chan Run)
	var playing sync.WaitGroup
	for range players {
		playing.Go(func() {
			for r := range next {
				c.take(c.play(ctx, r), ctx.Err() != nil)
			}
		})
	}
	for _, r := range runs {
		if ctx.Err() != nil || !more() {
			break
		}
		next <- r
	}
	close(next)
	playing.Wait()
}

// take takes in what came of a run. One that was interrupted says nothing.
func (c *campaign) take(r *Report, interrupted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if interrupted {
		return
	}
	fmt.Fprintln(c.w, r)
	if r.Skipped {
		fmt.Fprint(c.w, indent(r.Log))
		return
	}
	c.table.add(r)
	if !r.bad() {
		return
	}
	c.bad = true
	c.show(r)
}

// show tells what was found in a run, and keeps it.
func (c *campaign) show(r *Report) {
	fmt.Fprint(c.w, indent(listed(r.Findings)))
	if r.Failed {
		fmt.Fprint(c.w, indent(r.Log))
	}
	dir, err := r.keep(c.settings.Out)
	if err != nil {
		fmt.Fprintf(c.w, "    not all of it could be kept: %v\n", err)
	}
	fmt.Fprintf(c.w, "    kept in     %s\n    play again  %s\n", dir, r.Run.Again(c.settings.Out))
	if r.History != nil {
		fmt.Fprintf(c.w, "    judge again %s\n", command("-judge", filepath.Join(dir, historyFile)))
	}
}
