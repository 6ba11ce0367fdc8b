package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/inspect"
)

// states are the values of --state.
var states = map[string]core.RecordState{
	"unknown": core.StateUnknown, "running": core.StateRunning, "done": core.StateDone,
	"answered": core.StateAnswered, "damaged": core.StateDamaged, "all": 0,
}

// beginOutcomes adds the flags of outcomes ls.
func beginOutcomes(f *flag.FlagSet) action {
	filter := inspect.Filter{}
	f.StringVar(&filter.Match, "match", "", "only endpoint keys that match a `PATTERN` of Redis")
	f.StringVar(&filter.Process, "process", "", "only attempts of the process, by its `ID` or the first digits")
	state := f.String("state", "unknown", "only this `STATE`: unknown, running, done, answered, damaged or all")
	return func(ctx context.Context, c *call) error {
		wanted, ok := states[*state]
		if !ok {
			return misuse("%q is no --state", *state)
		}
		filter.State = wanted
		if err := checkProcess(filter.Process); err != nil {
			return err
		}
		return c.withServer(func(s *server) error {
			var page inspect.RecordPage
			err := c.within(ctx, func(ctx context.Context) (err error) {
				page, err = s.Records(ctx, filter)
				return err
			})
			if failed := c.printRecords(page, *state); failed != nil {
				return failed
			}
			return err
		})
	}
}

// printRecords prints a list of records, the oldest one first.
func (c *call) printRecords(page inspect.RecordPage, state string) error {
	var rows [][]string
	slices.SortStableFunc(page.Records, func(a, b inspect.Record) int { return cmp.Compare(b.Age, a.Age) })
	for _, record := range page.Records {
		v := c.viewRecord(record)
		if c.json {
			if err := c.printJSON(v); err != nil {
				return err
			}
			continue
		}
		rows = append(rows, []string{v.key(), v.State, v.Age.dashIfZero(), v.Retention.String(), strconv.Itoa(v.Attempts), processName{ID: v.Process}.short(), v.Seen})
	}
	c.table(c.out, []string{"ENDPOINT KEY", "STATE", "AGE", "RETENTION", "ATTEMPTS", "PROCESS", "SEEN"}, rows)
	what := "requests with an outcome that is " + state
	if state == "all" {
		what = "records of requests"
	}
	c.noteScan(c.problems, page.Scan, len(page.Records), what)
	isUnknown := func(r inspect.Record) bool { return r.State == core.StateUnknown }
	if !c.json && slices.ContainsFunc(page.Records, isUnknown) {
		fmt.Fprintln(c.problems, "reqlock: resolve an outcome before RETENTION ends: then the next copy runs")
	}
	return nil
}

// beginShowOutcome adds the flags of outcomes show.
func beginShowOutcome(f *flag.FlagSet) action {
	request := addRequest(f)
	return func(ctx context.Context, c *call) error {
		switch isRequest := request.method != "" || request.route != ""; {
		case len(c.args) == 0 && isRequest:
			return misuse("PART is missing")
		case len(c.args) == 0:
			return misuse("KEY is missing")
		case !isRequest && len(c.args) > 1:
			return misuse("%q is one argument too many: the parts of a key need --route", c.args[1])
		case !isRequest:
			return showOutcome(ctx, c, c.args[0])
		}
		key, err := request.key(c.args)
		if err != nil {
			return err
		}
		err = showOutcome(ctx, c, key)
		if errors.Is(err, core.ErrNotFound) {
			err = fmt.Errorf("%w: check --prefix, the route as the framework has it, and the order of the parts", err)
		}
		return err
	}
}

// showOutcome prints one record.
func showOutcome(ctx context.Context, c *call, key string) error {
	return printOne(ctx, c, func(ctx context.Context, s *server) (*recordView, error) { return c.readRecord(ctx, s, key) }, c.printRecord)
}

// readRecord reads a record. With the rights of the service alone, it reads what these allow.
func (c *call) readRecord(ctx context.Context, s *server, key string) (*recordView, error) {
	record, err := s.Record(ctx, key)
	if err == nil {
		return c.viewRecord(record), nil
	}
	if !strings.Contains(err.Error(), "NOPERM") {
		return nil, err
	}
	v := c.viewKey(key)
	return v, s.withLocker(ctx, c, func(locks *core.Locker) error {
		read, err := locks.ReadRecord(ctx, key)
		v.State, v.Seen, v.Attempts, v.Retention, v.First = read.State.String(), read.Attempt.String(), read.Number, span(read.Retention), read.First
		return err
	})
}

// printRecord prints a record for a person.
func (c *call) printRecord(v *recordView) {
	attempts, age, first := "", "", ""
	if v.Attempts > 0 {
		attempts = strconv.Itoa(v.Attempts)
	}
	if v.Age > 0 {
		age = v.Age.String()
	}
	if v.First != "" {
		first = quoted(v.First)
	}
	pairs(c.out, [2]string{"endpoint_key", v.key()}, [2]string{"state", v.State}, [2]string{"seen", v.Seen}, [2]string{"attempts", attempts},
		[2]string{"process", v.Process}, [2]string{"age", age}, [2]string{"retention", v.Retention.String()}, [2]string{"first", first})
}

// key returns the endpoint key as a table has it, or the digest.
func (v *recordView) key() string {
	if v.EndpointKey == "" {
		return v.Digest
	}
	return quoted(v.EndpointKey)
}
