package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/reqlock/reqlock/inspect"
)

// quoted returns a text of Redis as a terminal may get it: quoted as in Go, if it has a control
// character or another one that is not printed, or if its end would be unclear.
func quoted(text string) string {
	isPlain := text != "" && utf8.ValidString(text) && text == strings.TrimSpace(text) && text[0] != '"' &&
		!strings.ContainsFunc(text, func(r rune) bool { return !strconv.IsPrint(r) })
	if isPlain {
		return text
	}
	return strconv.Quote(text)
}

// orDash returns the text quoted, or "-" if it is empty.
func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return quoted(text)
}

// count returns a number of things.
func count(n int, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + several
}

// nameOf returns the key as a table has it.
func (c *call) nameOf(key inspect.Key) string {
	if c.digest || key.Raw() == "" {
		return key.String()
	}
	return quoted(key.Raw())
}

// printJSON prints a value on one line, without characters that a terminal may interpret.
func (c *call) printJSON(value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	line := make([]byte, 0, len(text)+1)
	for _, r := range string(text) { // Marshal escapes the control characters of ASCII but one
		switch {
		case r == unicode.MaxASCII || r > unicode.MaxASCII && !unicode.IsPrint(r):
			for _, unit := range utf16.Encode([]rune{r}) {
				line = fmt.Appendf(line, `\u%04x`, unit)
			}
		default:
			line = utf8.AppendRune(line, r)
		}
	}
	_, err = c.out.Write(append(line, '\n'))
	return err
}

// A span is a time in ms as JSON, and a short text in a table.
type span time.Duration

// MarshalJSON returns the whole ms, and -1 for a time that is not known.
func (d span) MarshalJSON() ([]byte, error) {
	if d < 0 {
		return []byte("-1"), nil
	}
	return strconv.AppendInt(nil, time.Duration(d).Milliseconds(), 10), nil
}

// String returns two units at most.
func (d span) String() string {
	const day = 24 * time.Hour
	switch t := time.Duration(d); {
	case t < 0:
		return "-"
	case t < time.Second:
		return t.Round(time.Millisecond).String()
	case t < time.Minute:
		return t.Truncate(100 * time.Millisecond).String()
	case t < time.Hour:
		return t.Truncate(time.Second).String()
	case t < 2*day:
		return fmt.Sprintf("%dh%dm", t/time.Hour, t%time.Hour/time.Minute)
	default:
		return fmt.Sprintf("%dd%dh", t/day, t%day/time.Hour)
	}
}
