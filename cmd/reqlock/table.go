package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/reqlock/reqlock/inspect"
)

// table prints rows under a heading, which is bold on a terminal.
func (c *call) table(out io.Writer, heading []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	var text bytes.Buffer
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{heading}, rows...) {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	_ = w.Flush()
	first, rest, _ := strings.Cut(text.String(), "\n")
	if c.hasEscapes(c.out) {
		first = "\x1b[1m" + first + "\x1b[m"
	}
	fmt.Fprint(out, first, "\n", rest)
}

// pairs prints names and values.
func pairs(out io.Writer, values ...[2]string) {
	w := tabwriter.NewWriter(out, 0, 0, 1, ' ', 0)
	for _, pair := range values {
		if pair[1] != "" {
			fmt.Fprintf(w, "%s:\t%s\n", pair[0], pair[1])
		}
	}
	_ = w.Flush()
}

// noteScan says that a list is empty or was cut short.
func (c *call) noteScan(notes io.Writer, scan inspect.Scan, found int, what string) {
	switch {
	case scan.Truncated:
		of := ""
		if scan.DBSize > 0 {
			of = fmt.Sprintf(" of %d", scan.DBSize)
		}
		fmt.Fprintf(notes, "reqlock: the list is cut short after %d %s: about %d%s keys were looked at. Raise --limit or --timeout\n", found, what, scan.Scanned, of)
	case found == 0 && !c.json:
		fmt.Fprintf(notes, "reqlock: no %s\n", what)
	}
}
