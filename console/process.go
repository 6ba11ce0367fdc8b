package console

import (
	"errors"
	"net/http"
	"regexp"
	"slices"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/inspect"
)

type processesPage struct {
	frame

	Rows []inspect.Process
	All  int
	Scan inspect.Scan
}

// showProcesses serves the list of the registered processes.
func (c *Console) showProcesses(w http.ResponseWriter, r *http.Request) {
	v := c.board.look(r.Context())
	page := &processesPage{frame: frame{Title: "Processes", Nav: "processes", Polls: true}}
	page.showState(v)
	if v.lists == nil {
		c.render(w, r, http.StatusServiceUnavailable, "processes", page)
		return
	}
	page.Scan, page.All = v.lists.processes.Scan, len(v.lists.processes.Processes)
	page.Rows = v.lists.processes.Processes[:min(maxRows, page.All)]
	page.Said = count(page.All, "process", "processes")
	c.render(w, r, http.StatusOK, "processes", page)
}

type processPage struct {
	frame
	inspect.Process

	IsSilent bool      // there is no record
	Others   []lockRow // the locks that it holds, as the last list has them, if it is silent
}

// processID matches the id of a process.
var processID = regexp.MustCompile(`^[0-9a-f]{32}$`)

// showProcess serves the page of one process, whose record is read now.
func (c *Console) showProcess(w http.ResponseWriter, r *http.Request, id string) {
	if !processID.MatchString(id) {
		c.problem(w, r, http.StatusNotFound, "The id of a process has 32 hex digits.")
		return
	}
	v := c.board.look(r.Context())
	page := &processPage{frame: frame{Title: "Process " + short(id), Nav: "processes", Polls: true}}
	page.showState(v)
	page.DataAt, page.Trouble = time.Now(), ""
	process, err := c.inspector.Process(r.Context(), id)
	status := http.StatusOK
	switch {
	case errors.Is(err, core.ErrNotFound):
		page.IsSilent = true
	case err != nil:
		page.DataAt = time.Time{}
		page.showState(v)
		page.Trouble, status = err.Error(), http.StatusServiceUnavailable
		process, page.IsSilent = v.lists.process(id)
	}
	page.Process = process
	page.ID = id
	if (page.IsSilent || process.Silent()) && v.lists != nil {
		for _, row := range v.lists.rows {
			if len(page.Others) < maxRows && slices.ContainsFunc(row.Holders, func(h inspect.Holder) bool { return h.Process == id }) {
				page.Others = append(page.Others, c.now(row, v.lists))
			}
		}
	}
	c.render(w, r, status, "process", page)
}

// process returns what the last list has of a process.
func (l *lists) process(id string) (p inspect.Process, isSilent bool) {
	if l != nil {
		for _, p := range l.processes.Processes {
			if p.ID == id {
				return p, false
			}
		}
	}
	return inspect.Process{}, true
}

// heardOf says when a process was last heard of, and whether that is so recent that it is probably alive.
// found is whether the process has a record.
func heardOf(p inspect.Process, found bool) (text string, isAlive bool) {
	switch {
	case !found:
		return "is silent: it has no record", false
	case p.Age < 0:
		return "has a record of an unknown age", false
	case p.Silent():
		return "has been silent for " + lasted(p.Age), false
	default:
		return "wrote its record " + lasted(p.Age) + " ago", true
	}
}

// riskOf says what happens if the lease is freed at once, as far as that is known.
func riskOf(h inspect.Holder, p inspect.Process, found bool) string {
	if h.Kind == inspect.HolderRevoked {
		return "The old holder may still run. Wait " + lasted(h.LeaseLeft) + " instead."
	}
	heard, isAlive := heardOf(p, found)
	if isAlive {
		return "Its process " + heard + ". Unless it has died since, two holders will run at once."
	}
	return "Its process " + heard + ". If it still runs, two holders will run at once."
}
