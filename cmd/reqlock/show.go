package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/inspect"
)

// show prints one lock, and the record of a request.
func show(ctx context.Context, c *call) error {
	return printOne(ctx, c, func(ctx context.Context, s *server) (lockView, error) { return c.look(ctx, s, c.args[0]) }, c.printLock)
}

// printOne prints what read returns: as JSON, or for a person by the function show.
func printOne[T any](ctx context.Context, c *call, read func(context.Context, *server) (T, error), show func(T)) error {
	return c.withServer(func(s *server) error {
		var v T
		err := c.within(ctx, func(ctx context.Context) (err error) {
			v, err = read(ctx, s)
			return err
		})
		switch {
		case err != nil:
			return err
		case c.json:
			return c.printJSON(v)
		}
		show(v)
		return nil
	})
}

// look reads a lock, and the record of a request. An attempt that has ended has a record only.
func (c *call) look(ctx context.Context, s *server, key string) (v lockView, err error) {
	lock, err := s.Lock(ctx, key)
	found := err == nil
	switch {
	case found:
		v = c.viewLock(lock, lock.Process)
	case !errors.Is(err, inspect.ErrNotFound):
		return v, err
	}
	if found && !lock.Idempotent {
		return v, nil
	}
	if found {
		key = lock.Key.Name()
	}
	record, err := s.Record(ctx, key)
	switch {
	case err == nil && !found:
		v = lockView{keyNames: c.names(record.Key), Idempotent: true, Holders: []holderView{}}
		v.Record = c.viewRecord(record)
	case err == nil:
		v.Record = c.viewRecord(record)
	case errors.Is(err, core.ErrNotFound) && found: // not yet
		return v, nil
	case errors.Is(err, core.ErrNotFound):
		return v, fmt.Errorf("%w, and no request has a record with this key", inspect.ErrNotFound)
	}
	return v, err
}

// printLock prints a lock for a person.
func (c *call) printLock(v lockView) {
	kind, waiting, fence := "lock", "", ""
	switch {
	case v.Idempotent:
		kind = "idempotent request"
	case v.Shared:
		kind = "shared lock or permits"
	}
	if v.Waiting > 0 {
		waiting = count(v.Waiting, "process", "processes")
		if requests := v.requests(); requests > 0 {
			waiting += "; in registered processes " + count(requests, "request", "requests")
		}
	}
	if v.FenceMax > 0 {
		fence = fmt.Sprintf("at most %d", v.FenceMax)
	}
	key := v.Digest
	if v.Key != "" {
		key = quoted(v.Key)
	}
	pairs(c.out, [2]string{"key", key}, [2]string{"digest", v.Digest}, [2]string{"kind", kind}, [2]string{"waiting", waiting}, [2]string{"fence", fence})
	var rows [][]string
	for _, h := range v.Holders {
		rows = append(rows, []string{h.Kind, h.short(), h.where(), h.since(time.Now()), h.Held.dashIfZero(), h.Left.String(), orDash(h.Lease), orDash(h.Caller)})
	}
	heading := withoutHolder([]string{"HOLDER", "PROCESS", "INSTANCE", "SINCE (UTC)", "HELD", "LEFT", "LEASE", "WHERE"}, rows)
	c.part("held by", heading, rows)
	rows = nil
	for _, w := range v.Waiters {
		requests := "-"
		if w.Requests > 0 {
			requests = strconv.Itoa(w.Requests)
		}
		rows = append(rows, []string{w.short(), w.where(), requests, w.Waiting.dashIfZero(), orDash(w.Caller)})
	}
	c.part("waited for by", []string{"PROCESS", "INSTANCE", "REQUESTS", "LONGEST", "WHERE"}, rows)
	if v.Record != nil {
		fmt.Fprintln(c.out)
		c.printRecord(v.Record)
	}
}

// part prints a table with a title after an empty line.
func (c *call) part(title string, heading []string, rows [][]string) {
	if len(rows) > 0 {
		fmt.Fprintf(c.out, "\n%s:\n", title)
	}
	c.table(c.out, heading, rows)
}

// since returns when the request has got the lease, by the clock here.
func (h holderView) since(now time.Time) string {
	if h.Held == 0 {
		return "-"
	}
	return now.Add(-time.Duration(h.Held)).UTC().Format(time.DateTime)
}

// requests returns how many requests wait in registered processes that are not silent.
func (v lockView) requests() (n int) {
	for _, w := range v.Waiters {
		if !w.Silent {
			n += w.Requests
		}
	}
	return n
}
