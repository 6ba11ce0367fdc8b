package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"path"
	"strconv"
	"strings"
	"sync"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/inspect"
)

// beginLs adds the flags of ls.
func beginLs(f *flag.FlagSet) action {
	filter := addFilter(f)
	return func(ctx context.Context, c *call) error {
		return c.withServer(func(s *server) error { return list(ctx, c, s, *filter, c.out, c.problems) })
	}
}

// addFilter adds the flags that say which locks a list has.
func addFilter(f *flag.FlagSet) *inspect.Filter {
	filter := &inspect.Filter{}
	f.IntVar(&filter.MinWaiting, "waiting", 0, "only locks for which at least `N` processes wait")
	f.StringVar(&filter.Process, "process", "", "only locks that the process holds or waits for, by its `ID` or the first digits")
	f.StringVar(&filter.Match, "match", "", "only keys that match a `PATTERN` of Redis, such as 'account:*'")
	return filter
}

// list prints the locks of a filter, and notes about the list.
func list(ctx context.Context, c *call, s *server, filter inspect.Filter, out, notes io.Writer) error {
	var page inspect.Page
	var known map[string]inspect.Process
	err := c.within(ctx, func(ctx context.Context) (err error) {
		page, err = s.Locks(ctx, filter)
		if err == nil {
			known, err = s.holders(ctx, page.Locks)
		}
		return err
	})
	var rows [][]string
	for _, lock := range page.Locks {
		v := c.viewLock(lock, func(id string) (inspect.Process, bool) {
			p, ok := known[id]
			return p, ok
		})
		if c.json {
			if err := c.printJSON(v); err != nil {
				return err
			}
			continue
		}
		rows = append(rows, append([]string{c.nameOf(lock.Key)}, v.row()...))
	}
	c.table(out, []string{"KEY", "HOLDER", "PROCESS", "HELD", "LEFT", "WAITING", "WHERE"}, rows)
	if err == nil || len(page.Locks) > 0 {
		c.noteScan(notes, page.Scan, len(page.Locks), "locks")
	}
	return err
}

// row returns the columns of the lock without its key.
func (v lockView) row() []string {
	waiting := strconv.Itoa(v.Waiting)
	if len(v.Holders) != 1 {
		left := span(-1)
		for _, h := range v.Holders {
			left = max(left, h.Left)
		}
		return []string{count(len(v.Holders), "lease", "leases"), "-", "-", left.String(), waiting, "-"}
	}
	h := v.Holders[0]
	return []string{h.name(), h.where(), h.Held.dashIfZero(), h.Left.String(), waiting, orDash(shortCaller(h.Caller))}
}

// shortCaller returns the last folder, the file and the line of a caller.
func shortCaller(caller string) string {
	place, _, _ := strings.Cut(caller, " (")
	if dir, file := path.Split(place); dir != "" {
		return path.Join(path.Base(dir), file)
	}
	return place
}

// name returns the first digits of the process, or the kind of a holder that is no process.
func (h holderView) name() string {
	if h.ID == "" {
		return h.Kind
	}
	return h.short()
}

const (
	// maxHolders is how many processes of a list are looked up.
	maxHolders = 100
	// lookups is how many of them at a time.
	lookups = 8
)

// holders returns the processes of the holders of locks, by their ids, without those that are silent. Only
// the ID is set of those that were not looked up.
func (s *server) holders(ctx context.Context, locks []inspect.Lock) (map[string]inspect.Process, error) {
	known := make(map[string]inspect.Process)
	for _, lock := range locks {
		for _, h := range lock.Holders {
			if h.Process != "" {
				known[h.Process] = inspect.Process{ID: h.Process}
			}
		}
	}
	ids := make(chan string, min(maxHolders, len(known)))
	for id := range known {
		if len(ids) < cap(ids) {
			ids <- id
		}
	}
	close(ids)
	var mu sync.Mutex
	var failed error
	var workers sync.WaitGroup
	for range min(lookups, len(known)) {
		workers.Go(func() {
			for id := range ids {
				p, err := s.Process(ctx, id)
				mu.Lock()
				switch {
				case err == nil:
					known[id] = p
				case errors.Is(err, core.ErrNotFound):
					delete(known, id)
				default:
					failed = err
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	return known, failed
}
