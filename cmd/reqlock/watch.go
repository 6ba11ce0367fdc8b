package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"time"
)

const (
	// usualPause and shortestPause are those between two lists.
	usualPause    = 2 * time.Second
	shortestPause = 100 * time.Millisecond
	// clear moves the cursor to the top of a terminal, and clears what is below.
	clear = "\x1b[H\x1b[J"
)

// beginWatch adds the flags of watch.
func beginWatch(f *flag.FlagSet) action {
	l := addListing(f)
	every := f.Duration("every", usualPause, "the `TIME` between two lists")
	return func(ctx context.Context, c *call) error {
		if *every < shortestPause {
			return misuse("--every is shorter than %v", shortestPause)
		}
		if err := l.check(); err != nil {
			return err
		}
		return c.withServer(func(s *server) error {
			times, stop := c.ticks(*every)
			defer stop()
			for isFirst := true; ; isFirst = false {
				var text bytes.Buffer
				notes := c.problems
				if c.hasEscapes(c.out) { // which clears the notes with the list before
					notes = &text
				}
				err := l.print(ctx, c, s, &text, notes)
				switch {
				case ctx.Err() != nil:
					return nil
				case err != nil && isFirst:
					return err
				}
				c.redraw(text.Bytes(), isFirst)
				if out, isOutput := c.out.(*output); isOutput && out.err != nil { // nobody gets the next list
					return out.err
				}
				if err != nil { // it may be over with the next list
					fmt.Fprintln(c.problems, (&failure{nil, interrupted(err, c)}).Error())
				}
				select {
				case <-times:
				case <-ctx.Done():
					return nil
				}
			}
		})
	}
}

// redraw prints a list in place of the one before, or below it if the output is no terminal.
func (c *call) redraw(text []byte, isFirst bool) {
	switch {
	case c.json:
		return
	case c.hasEscapes(c.out):
		text = append([]byte(clear), text...)
	case !isFirst:
		text = append([]byte("\n"), text...)
	}
	_, _ = c.out.Write(text)
}
