package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/inspect"
)

// checkKeys finds out whether this user may scan, and what an operator should look at among the keys.
func checkKeys(ctx context.Context, c *call, s *server) []finding {
	locks, err := s.Locks(ctx, inspect.Filter{})
	if err != nil {
		return []finding{failed("scan", err)}
	}
	registered, err := s.Processes(ctx)
	if err != nil {
		return []finding{failed("processes", err)}
	}
	unknown, err := s.Records(ctx, inspect.Filter{State: core.StateUnknown})
	if err != nil {
		return []finding{failed("outcomes", err)}
	}
	scan := finding{"scan", ok, fmt.Sprintf("%d locks in about %d of %d keys", len(locks.Locks), locks.Scanned, locks.DBSize)}
	if locks.Truncated || registered.Truncated || unknown.Truncated {
		scan.Result = warn
	}
	registered.Processes = slices.DeleteFunc(registered.Processes, inspect.Process.Silent)
	return []finding{
		scan, c.ttlFinding(locks.Locks), processesFinding(registered, locks.Locks, unknown.Records),
		holdsFinding(registered.Processes), outcomesFinding(unknown.Records),
	}
}

// ttlFinding says which locks never end.
func (c *call) ttlFinding(locks []inspect.Lock) finding {
	forever, example := 0, ""
	for _, lock := range locks {
		for _, h := range lock.Holders {
			if h.LeaseLeft < 0 {
				forever, example = forever+1, c.nameOf(lock.Key)
			}
		}
	}
	if forever == 0 {
		return finding{"ttl", ok, "each of these locks has a TTL"}
	}
	return finding{"ttl", warn, fmt.Sprintf("%s no TTL, so it does not end by itself: another program has set it. An example is %s", count(forever, "lock has", "locks have"), example)}
}

// maxSilent is how many silent processes doctor names.
const maxSilent = 3

// processesFinding says how many processes are registered, and which are silent although they matter. A
// process that a list which was cut short has left out is not known to be silent.
func processesFinding(registered inspect.ProcessPage, locks []inspect.Lock, unknown []inspect.Record) finding {
	f := finding{"processes", ok, count(len(registered.Processes), "process is registered", "processes are registered")}
	if registered.Truncated {
		return f
	}
	isSeen := map[string]bool{"": true}
	for _, p := range registered.Processes {
		isSeen[p.ID] = true
	}
	var silent []string
	add := func(id string) {
		if !isSeen[id] {
			isSeen[id] = true
			silent = append(silent, processName{ID: id}.short())
		}
	}
	for _, lock := range locks {
		for _, h := range lock.Holders {
			add(h.Process)
		}
	}
	for _, r := range unknown {
		add(r.Process)
	}
	if len(silent) > 0 {
		f.Result = warn
		f.Detail += "; " + count(len(silent), "of the processes that hold leases or ran an unknown outcome is", "of the processes that hold leases or ran an unknown outcome are") +
			" silent: dead, or without core.WithInstance: " + strings.Join(silent[:min(maxSilent, len(silent))], ", ")
	}
	return f
}

// holdsFinding says which hold of a registered process has lasted longest.
func holdsFinding(registered []inspect.Process) finding {
	f := finding{"holds", ok, "no process reports a hold"}
	var longest span
	for _, p := range registered {
		for _, h := range p.Holds {
			if span(h.For) >= longest {
				longest = span(h.For)
				name := orDash(h.Digest)
				if h.Name != "" {
					name = quoted(h.Name)
				}
				f.Detail = fmt.Sprintf("the longest one known has lasted %v: %s, in process %s", longest, name, nameOfProcess(p).short())
			}
		}
	}
	return f
}

// outcomesFinding says how many outcomes are unknown.
func outcomesFinding(unknown []inspect.Record) finding {
	if len(unknown) == 0 {
		return finding{"outcomes", ok, "no outcome is unknown"}
	}
	oldest := slices.MaxFunc(unknown, func(a, b inspect.Record) int { return cmp.Compare(a.Age, b.Age) })
	return finding{"outcomes", warn, fmt.Sprintf("%s unknown, the oldest one for %v: see reqlock outcomes", count(len(unknown), "outcome is", "outcomes are"), span(oldest.Age))}
}
