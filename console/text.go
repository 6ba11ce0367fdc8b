package console

import (
	"fmt"
	"html/template"
	"strings"
	"time"
)

// funcs are what the templates call.
func funcs() template.FuncMap {
	return template.FuncMap{
		"lasted": func(d time.Duration) string { return strings.ReplaceAll(lasted(d), " ", "\u00a0") }, // one line
		"short":  short,
		"clock":  clock,
		"stamp":  func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"count":  count,
		"kinds": func() map[string]ActionKind {
			return map[string]ActionKind{"revoke": Revoke, "freeNow": FreeNow, "resolve": Resolve}
		},
	}
}

// lasted returns a time span as people read it. A negative one is not known.
func lasted(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < 0:
		return "–"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < 10*time.Minute:
		return fmt.Sprintf("%d min %d s", d/time.Minute, d%time.Minute/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < day:
		return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
	default:
		return fmt.Sprintf("%d d %d h", d/day, d%day/time.Hour)
	}
}

// clock returns a time, with its date unless that is today.
func clock(t time.Time) string {
	if t = t.UTC(); t.Format(time.DateOnly) != time.Now().UTC().Format(time.DateOnly) {
		return t.Format("2006-01-02 15:04 UTC")
	}
	return t.Format("15:04:05 UTC")
}

// short returns the first digits of an id.
func short(id string) string { return id[:min(8, len(id))] }

// count returns a number with its noun: count 1 "lock" "locks".
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
