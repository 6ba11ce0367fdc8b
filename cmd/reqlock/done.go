package main

import (
	"context"
	"flag"
	"strconv"
	"strings"

	"github.com/reqlock/reqlock/core"
)

// A doneView is a line of --json that says what was done. Before and After are those of core.Change. Error is
// set if it is unknown whether it was done.
type doneView struct {
	Action string `json:"action"`
	Digest string `json:"digest"`
	Leases int    `json:"leases,omitempty"`
	Status int    `json:"status,omitempty"`
	Bytes  int    `json:"bytes,omitempty"`
	By     string `json:"by,omitempty"`
	Why    string `json:"why,omitempty"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
	Error  string `json:"error,omitempty"`
}

// A signature says who does something, and why.
type signature struct {
	by, why  string
	isSigned bool // also by an empty name, which is refused
}

// add adds the flags.
func (s *signature) add(f *flag.FlagSet) {
	f.Func("by", "`WHO` does it, for the line that says what was done", func(by string) error {
		s.by, s.isSigned = by, true
		return nil
	})
	f.StringVar(&s.why, "why", "", "the `REASON`, for the same line; needs --by")
}

// sign returns the context of what is done.
func (s *signature) sign(ctx context.Context) (context.Context, error) {
	switch {
	case s.isSigned:
	case s.why == "":
		return ctx, nil
	default:
		return nil, misuse("--why needs --by")
	}
	signed, err := core.AsOperator(ctx, s.by, s.why)
	if err != nil {
		return nil, misuse("%s", strings.TrimPrefix(err.Error(), "reqlock: AsOperator: "))
	}
	return signed, nil
}

// observe keeps what was changed, or was perhaps changed.
func (c *call) observe(e core.Event) {
	if e.Change != nil {
		c.change = &e
	}
}

// done prints what was done, or was perhaps done if failed is not nil, and returns that error. The text is that of a
// person.
func (c *call) done(v doneView, text string, s signature, failed error) error {
	v.By, v.Why = s.by, s.why
	if c.change != nil {
		did := c.change.Change
		v.By, v.Why, v.Before, v.After = did.By, did.Why, did.Before, did.After
	}
	if failed != nil {
		v.Error, text = failed.Error(), "perhaps "+text
	}
	err := c.printDone(v, text)
	if failed != nil {
		return failed
	}
	return err
}

// printDone prints what was done as an object or as a text.
func (c *call) printDone(v doneView, text string) error {
	if c.json {
		return c.printJSON(v)
	}
	if v.By != "" {
		by := quoted(v.By)
		if strings.ContainsAny(by, ":,") && by == v.By { // it looks like the rest of the line
			by = strconv.Quote(by)
		}
		text += ", by " + by
	}
	if v.Why != "" {
		text += ": " + quoted(v.Why)
	}
	_, err := c.out.Write([]byte(text + "\n"))
	return err
}
