package main

import (
	"context"
	"errors"
	"flag"
	"net/http"
	"strconv"
	"strings"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/nethttplock"
)

// A doneView is a line of --json that says what was done.
type doneView struct {
	Action string `json:"action"`
	Digest string `json:"digest"`
	Leases int    `json:"leases,omitempty"`
	By     string `json:"by,omitempty"`
	Why    string `json:"why,omitempty"`
}

// A signature says who does something, and why.
type signature struct{ by, why string }

// add adds the flags.
func (s *signature) add(f *flag.FlagSet) {
	f.StringVar(&s.by, "by", "", "`WHO` does it, for the line that says what was done")
	f.StringVar(&s.why, "why", "", "the `REASON`, for the same line")
}

// done prints what was done. The text is that of a person.
func (c *call) done(v doneView, text string, s signature) error {
	v.By, v.Why = s.by, s.why
	if c.json {
		return c.printJSON(v)
	}
	if s.by != "" {
		text += ", by " + quoted(s.by)
	}
	if s.why != "" {
		text += ": " + quoted(s.why)
	}
	_, err := c.out.Write([]byte(text + "\n"))
	return err
}

// beginResolve adds the flags of resolve.
func beginResolve(f *flag.FlagSet) action {
	var by signature
	by.add(f)
	contentType := f.String("content-type", "application/json", "the Content-Type `TYPE` of the answer")
	return func(ctx context.Context, c *call) error {
		resolution, err := resolutionOf(c.args[1:], *contentType)
		if err != nil {
			return err
		}
		var seen core.AttemptID
		if err := seen.UnmarshalText([]byte(c.args[2])); err != nil || seen == (core.AttemptID{}) {
			return misuse("SEEN is not the 40 hex digits that reqlock outcomes show prints")
		}
		return c.withServer(func(s *server) error {
			var v *recordView
			err := c.within(ctx, func(ctx context.Context) (err error) {
				v, err = c.resolve(ctx, s, resolution, seen)
				return err
			})
			if err != nil {
				return err
			}
			return c.done(doneView{Action: "resolved_" + c.args[1], Digest: v.Digest}, "resolved "+v.key()+" as "+c.args[1], by)
		})
	}
}

// resolve resolves the request of a key, and returns its names. An endpoint key needs only the rights of
// the service.
func (c *call) resolve(ctx context.Context, s *server, resolution core.Resolution, seen core.AttemptID) (*recordView, error) {
	key := c.args[0]
	err := s.withLocker(ctx, c, func(locks *core.Locker) error { return locks.Resolve(ctx, key, resolution, seen) })
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

// resolutionOf returns the resolution that the arguments after KEY name.
func resolutionOf(args []string, contentType string) (core.Resolution, error) {
	switch {
	case len(args) == 2 && args[0] == "not_done":
		return core.NotDone(), nil
	case len(args) == 2 && args[0] == "done":
		return core.Done(), nil
	case len(args) == 4 && args[0] == "answered":
		status, err := strconv.Atoi(args[2])
		if err != nil {
			return core.Resolution{}, misuse("the STATUS is no number")
		}
		answer, err := nethttplock.NewAnswer(status, http.Header{"Content-Type": {contentType}}, []byte(args[3]))
		if err != nil {
			return core.Resolution{}, misuse("%s", strings.TrimPrefix(err.Error(), "reqlock: "))
		}
		return core.Answered(answer), nil
	}
	return core.Resolution{}, misuse("the arguments are none of the forms below")
}
