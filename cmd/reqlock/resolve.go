package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strconv"

	"github.com/reqlock/reqlock/core"
)

// notDone is the resolution that lets the next copy run.
const notDone = "not_done"

// beginResolve adds the flags of resolve.
func beginResolve(f *flag.FlagSet) action {
	var by signature
	by.add(f)
	yes := f.Bool("yes", false, "do not ask before "+notDone)
	contentType := f.String("content-type", "application/json", "the Content-Type `TYPE` of the answer")
	return func(ctx context.Context, c *call) error {
		if err := missingOf(c.args); err != nil {
			return err
		}
		done := doneView{Action: "resolved_" + c.args[1]}
		resolution, err := c.resolutionOf(ctx, *contentType, &done)
		if err != nil {
			return err
		}
		var seen core.AttemptID
		if err := seen.UnmarshalText([]byte(c.args[2])); err != nil || seen == (core.AttemptID{}) {
			return misuse("SEEN is not the 40 hex digits that reqlock outcomes show prints")
		}
		ctx, err = by.sign(ctx)
		if err != nil {
			return err
		}
		return c.withServer(func(s *server) error {
			if c.args[1] == notDone {
				if err := c.confirmNotDone(ctx, s, seen, *yes); err != nil {
					return err
				}
			}
			var v *recordView
			err := c.within(ctx, func(ctx context.Context) (err error) {
				v, err = c.resolve(ctx, s, resolution, seen)
				return err
			})
			if err != nil && c.change == nil {
				return err
			}
			text := "resolved " + v.key() + " as " + c.args[1]
			if done.Status > 0 {
				text += fmt.Sprintf(", status %d, %s", done.Status, count(done.Bytes, "byte", "bytes"))
			}
			done.Digest = v.Digest
			return c.done(done, text, by, err)
		})
	}
}

// resolve resolves the request of a key, and returns its names. An endpoint key needs only the rights of
// the service.
func (c *call) resolve(ctx context.Context, s *server, resolution core.Resolution, seen core.AttemptID) (*recordView, error) {
	key := c.args[0]
	err := s.withLocker(ctx, c, func(locks *core.Locker) error { return locks.Resolve(ctx, key, resolution, seen) }, core.WithObserver(c.observe))
	if !errors.Is(err, core.ErrNotFound) {
		return c.viewKey(key), err
	}
	record, err := s.Record(ctx, key) // in another spelling
	if err != nil {
		return nil, err
	}
	if _, ok := record.Key.EndpointKey(); !ok {
		return nil, errors.New("there is only a digest of the key in Redis: give the endpoint key itself as KEY, as reqlock key prints it")
	}
	record.Attempt = seen
	return c.viewRecord(record), s.Resolve(ctx, record, resolution)
}

// confirmNotDone says what is known of the process that ran the attempt, and asks.
func (c *call) confirmNotDone(ctx context.Context, s *server, seen core.AttemptID, yes bool) error {
	var v *recordView
	known := "reqlock cannot find out which process ran the attempt: it may still charge."
	err := c.within(ctx, func(ctx context.Context) (err error) {
		if v, err = c.readRecord(ctx, s, c.args[0]); err != nil || v.Process == "" {
			return err
		}
		name := processName{ID: v.Process}
		switch p, err := s.Process(ctx, v.Process); {
		case err == nil:
			name = nameOfProcess(p)
			known = fmt.Sprintf("process %s, %s, ran the attempt, and wrote its record %v ago: it may still charge.", name.short(), name.where(), span(p.Age))
		case errors.Is(err, core.ErrNotFound):
			known = fmt.Sprintf("process %s ran the attempt, and is silent: it may still charge.", name.short())
		}
		return nil
	})
	if err != nil || v.Seen != seen.String() { // which resolve refuses
		return err
	}
	fmt.Fprintln(c.problems, known, "Has its handler ended? See the runbook of unknown outcomes.")
	question := fmt.Sprintf("If the handler runs, the next copy acts beside it. Type %s to let the next copy run: ", v.Digest)
	return c.confirm(ctx, notDone, question, v.Digest, yes)
}

// missingOf returns the error for an argument that is missing.
func missingOf(args []string) error {
	names := []string{"KEY", "the resolution, which is not_done, done or answered,", "SEEN"}
	if len(args) > 1 && args[1] == "answered" {
		names = append(names, "STATUS", "BODY")
	}
	switch {
	case len(args) >= len(names):
		return nil
	case len(args) == 2:
		return misuse("SEEN is missing: reqlock outcomes show KEY prints it")
	default:
		return misuse("%s is missing", names[len(args)])
	}
}

// resolutionOf returns the resolution that the arguments after KEY name, and adds to what is done.
func (c *call) resolutionOf(ctx context.Context, contentType string, done *doneView) (core.Resolution, error) {
	switch args := c.args[1:]; {
	case len(args) == 2 && args[0] == notDone:
		return core.NotDone(), nil
	case len(args) == 2 && args[0] == "done":
		return core.Done(), nil
	case len(args) == 4 && args[0] == "answered":
		status, err := strconv.Atoi(args[2])
		if err != nil {
			return core.Resolution{}, misuse("the STATUS is no number")
		}
		body, err := c.bodyOf(ctx, args[3])
		if err != nil {
			return core.Resolution{}, err
		}
		done.Status, done.Bytes = status, len(body)
		return answered(status, contentType, body)
	}
	return core.Resolution{}, misuse("the arguments are none of the forms below")
}
