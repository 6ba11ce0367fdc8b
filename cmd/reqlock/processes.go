package main

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/reqlock/reqlock/inspect"
)

// A processView is a registered process as a line of --json.
type processView struct {
	processName

	Started time.Time  `json:"started"`
	Age     span       `json:"age_ms"`
	Held    int        `json:"held"`
	Waiting int        `json:"waiting"`
	Holds   []holdView `json:"holds,omitempty"`
	Waits   []holdView `json:"waits,omitempty"`
}

// A holdView is a lease of a process, or a key for which its requests wait.
type holdView struct {
	Digest     string `json:"digest"`
	Name       string `json:"name,omitempty"`
	Caller     string `json:"caller,omitempty"`
	For        span   `json:"for_ms"`
	Idempotent bool   `json:"idempotent,omitempty"`
	Shared     bool   `json:"shared,omitempty"`
	Requests   int    `json:"requests,omitempty"`
}

// isProcessID matches the id of a process, and its first digits.
var isProcessID = regexp.MustCompile(`^[0-9a-f]{4,32}$`)

// checkProcess refuses what is neither the id of a process nor its first digits, nor "".
func checkProcess(id string) error {
	if id != "" && !isProcessID.MatchString(id) {
		return misuse("--process: the id is not 32 hex digits in lower case, nor the first 4 or more of them")
	}
	return nil
}

// processes lists the registered processes, or shows one.
func processes(ctx context.Context, c *call) error {
	return c.withServer(func(s *server) error {
		var page inspect.ProcessPage
		if len(c.args) > 0 && !isProcessID.MatchString(c.args[0]) {
			return misuse("the id is not 32 hex digits in lower case, nor the first 4 or more of them")
		}
		err := c.within(ctx, func(ctx context.Context) (err error) {
			if len(c.args) == 0 {
				page, err = s.Processes(ctx)
				return err
			}
			p, err := s.Process(ctx, c.args[0])
			page.Processes = []inspect.Process{p}
			return err
		})
		if err != nil && (len(page.Processes) == 0 || len(c.args) > 0) {
			return err
		}
		if c.json {
			for _, p := range page.Processes {
				if err := c.printJSON(viewProcess(p)); err != nil {
					return err
				}
			}
		} else {
			c.printProcesses(page.Processes)
		}
		if len(c.args) == 0 {
			c.noteScan(c.problems, page.Scan, len(page.Processes), "registered processes")
		} else if !c.json {
			c.printHolds(viewProcess(page.Processes[0]))
		}
		return err
	})
}

// viewProcess returns the view of a process.
func viewProcess(p inspect.Process) processView {
	v := processView{processName: nameOfProcess(p), Started: p.Started, Age: span(p.Age), Held: p.Held, Waiting: p.Waiting}
	for _, h := range p.Holds {
		v.Holds = append(v.Holds, holdView{Digest: h.Digest, Name: h.Name, Caller: h.Caller, For: span(h.For), Idempotent: h.Idempotent, Shared: h.Shared})
	}
	for _, w := range p.Waits {
		v.Waits = append(v.Waits, holdView{Digest: w.Digest, Name: w.Name, Caller: w.Caller, For: span(w.For), Requests: w.Requests})
	}
	return v
}

// printProcesses prints processes for a person.
func (c *call) printProcesses(list []inspect.Process) {
	var rows [][]string
	for _, p := range list {
		longest := "-"
		if len(p.Holds) > 0 {
			longest = fmt.Sprintf("%s %s %s", orDash(p.Holds[0].Digest), orDash(p.Holds[0].Name), span(p.Holds[0].For))
		}
		age := span(p.Age).String()
		if p.Silent() {
			age += " (silent)"
		}
		rows = append(rows, []string{
			nameOfProcess(p).short(), orDash(p.Service), orDash(p.Version), orDash(p.Host), strconv.Itoa(p.PID),
			p.Started.UTC().Format(time.DateTime), age, strconv.Itoa(p.Held), strconv.Itoa(p.Waiting), longest,
		})
	}
	c.table(c.out, []string{"PROCESS", "SERVICE", "VERSION", "HOST", "PID", "STARTED (UTC)", "RECORD AGE", "HELD", "WAITING", "LONGEST HELD"}, rows)
}

// printHolds prints what a process holds and waits for.
func (c *call) printHolds(v processView) {
	for _, part := range []struct {
		title string
		list  []holdView
	}{{"held", v.Holds}, {"waited for", v.Waits}} {
		var rows [][]string
		for _, h := range part.list {
			requests := "-"
			if h.Requests > 0 {
				requests = strconv.Itoa(h.Requests)
			}
			rows = append(rows, []string{orDash(h.Digest), orDash(h.Name), h.For.String(), requests, orDash(h.Caller)})
		}
		c.part(part.title, []string{"DIGEST", "NAME", "FOR", "REQUESTS", "WHERE"}, rows)
	}
}
