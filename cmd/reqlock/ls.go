package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/inspect"
)

// A listing says which locks a list has, and in which order.
type listing struct {
	inspect.Filter

	sort string
}

// beginLs adds the flags of ls.
func beginLs(f *flag.FlagSet) action {
	l := addListing(f)
	return func(ctx context.Context, c *call) error {
		if err := l.check(); err != nil {
			return err
		}
		return c.withServer(func(s *server) error { return l.print(ctx, c, s, c.out, c.problems) })
	}
}

// addListing adds the flags of a listing.
func addListing(f *flag.FlagSet) *listing {
	l := &listing{}
	f.IntVar(&l.MinWaiting, "waiting", 0, "only locks for which at least `N` processes wait")
	f.StringVar(&l.Process, "process", "", "only locks that the process holds or waits for, by its `ID` or the first digits")
	f.StringVar(&l.Match, "match", "", "only keys that match a `PATTERN` of Redis, such as 'account:*'")
	f.StringVar(&l.sort, "sort", "key", "the `ORDER`: key, held (the longest one first) or waiting (the most processes first)")
	return l
}

// orders are the values of --sort. Locks that are equal stay sorted by their keys.
var orders = map[string]func(a, b lockView) int{
	"key":     func(lockView, lockView) int { return 0 },
	"held":    func(a, b lockView) int { return cmp.Compare(b.held(), a.held()) },
	"waiting": func(a, b lockView) int { return cmp.Compare(b.Waiting, a.Waiting) },
}

// check refuses values that are wrong.
func (l *listing) check() error {
	if orders[l.sort] == nil {
		return misuse("%q is no --sort", l.sort)
	}
	return checkProcess(l.Process)
}

// print prints the locks, and notes about the list.
func (l *listing) print(ctx context.Context, c *call, s *server, out, notes io.Writer) error {
	var page inspect.Page
	var known map[string]inspect.Process
	err := c.within(ctx, func(ctx context.Context) (err error) {
		page, err = s.Locks(ctx, l.Filter)
		if err == nil {
			known, err = s.holders(ctx, page.Locks)
		}
		return err
	})
	type named struct {
		lockView

		name string // as a table has it
	}
	views, untimed := make([]named, 0, len(page.Locks)), 0
	for _, lock := range page.Locks {
		v := c.viewLock(lock, func(id string) (inspect.Process, bool) {
			p, ok := known[id]
			return p, ok
		})
		for _, h := range v.Holders {
			if p, ok := known[h.ID]; ok && h.Held == 0 && p.Held > len(p.Holds) {
				untimed++
			}
		}
		views = append(views, named{v, c.nameOf(lock.Key)})
	}
	slices.SortStableFunc(views, func(a, b named) int { return orders[l.sort](a.lockView, b.lockView) })
	var rows [][]string
	for _, v := range views {
		if !c.json {
			rows = append(rows, append([]string{v.name}, v.row()...))
		} else if err := c.printJSON(v.lockView); err != nil {
			return err
		}
	}
	heading := withoutHolder([]string{"KEY", "HOLDER", "PROCESS", "INSTANCE", "HELD", "LEFT", "WAITING", "WHERE"}, rows)
	c.table(out, heading, rows)
	if err == nil || len(views) > 0 {
		c.noteScan(notes, page.Scan, len(views), "locks")
	}
	if untimed > 0 && !c.json {
		fmt.Fprintf(notes, "reqlock: %s no time: a process reports only its 20 longest\n", count(untimed, "lease has", "leases have"))
	}
	return err
}

// held returns how long the lock is held, or 0 if that is not known.
func (v lockView) held() (longest span) {
	for _, h := range v.Holders {
		longest = max(longest, h.Held)
	}
	return longest
}

// row returns the columns of the lock without its key.
func (v lockView) row() []string {
	waiting := strconv.Itoa(v.Waiting)
	if len(v.Holders) != 1 {
		left := span(-1)
		for _, h := range v.Holders {
			left = max(left, h.Left)
		}
		return []string{count(len(v.Holders), "lease", "leases"), "-", "-", v.held().dashIfZero(), left.String(), waiting, "-"}
	}
	h := v.Holders[0]
	return []string{h.Kind, h.short(), h.where(), h.Held.dashIfZero(), h.Left.String(), waiting, orDash(shortCaller(h.Caller))}
}

// withoutHolder returns the heading, and takes the column HOLDER out of the heading and the rows if all holders are
// processes.
func withoutHolder(heading []string, rows [][]string) []string {
	at := slices.Index(heading, "HOLDER")
	if slices.ContainsFunc(rows, func(row []string) bool { return row[at] != inspect.HolderProcess.String() }) {
		return heading
	}
	for n, row := range rows {
		rows[n] = slices.Delete(row, at, at+1)
	}
	return slices.Delete(heading, at, at+1)
}

// shortCaller returns the last folder, the file and the line of a caller.
func shortCaller(caller string) string {
	place, _, _ := strings.Cut(caller, " (")
	if dir, file := path.Split(place); dir != "" {
		return path.Join(path.Base(dir), file)
	}
	return place
}

const (
	// maxHolders is how many processes of a list are looked up.
	maxHolders = 100
	// lookups is how many of them at a time.
	lookups = 8
)

// holders returns the processes of the holders of locks, by their ids, without those that have no record. Only
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
