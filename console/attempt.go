package console

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/inspect"
)

// A recordRow is a record in a list.
type recordRow struct {
	inspect.Record

	Digest, Raw string
	Process     processLink
}

// records returns the rows of the first n unknown outcomes.
func (c *Console) records(l *lists, n int) []recordRow {
	rows := make([]recordRow, 0, min(n, len(l.unknown.Records)))
	for _, record := range l.unknown.Records[:cap(rows)] {
		rows = append(rows, recordRow{record, record.Key.String(), c.raw(record.Key), l.linkTo(record.Process)})
	}
	return rows
}

type outcomesPage struct {
	frame

	Rows []recordRow
	All  int
	Scan inspect.Scan
}

// showOutcomes serves the list of the unknown outcomes, the oldest first.
func (c *Console) showOutcomes(w http.ResponseWriter, r *http.Request) {
	v := c.board.look(r.Context())
	page := &outcomesPage{frame: frame{Title: "Unknown outcomes", Nav: "outcomes", Polls: true}}
	page.showState(v)
	if v.lists == nil {
		c.render(w, r, http.StatusServiceUnavailable, "outcomes", page)
		return
	}
	page.All, page.Scan, page.Rows = len(v.lists.unknown.Records), v.lists.unknown.Scan, c.records(v.lists, maxRows)
	page.Said = count(page.All, "unknown outcome", "unknown outcomes")
	c.render(w, r, http.StatusOK, "outcomes", page)
}

type attemptPage struct {
	frame
	inspect.Record

	Digest, Raw string // Raw is the endpoint key with WithRawKeys
	Runner      processLink
	IsGone      bool // there is no record
	CanResolve  bool
	Allowed     map[string]bool // by the name of an action
	Actor       string
	Reason      string
	Ends        time.Time // of the record
	HasKey      bool      // Redis has the key itself, which Resolve needs
	Handler     string    // what is known of the process of the handler
}

// showAttempt serves the page of one idempotent request, which is read now.
func (c *Console) showAttempt(w http.ResponseWriter, r *http.Request, digest string, a answer) {
	ctx := r.Context()
	key, known := c.board.key(ctx, digest)
	v, _ := c.board.see()
	if !known {
		c.unknownKey(w, r, v)
		return
	}
	record, err := c.readRecord(ctx, key)
	page := &attemptPage{frame: frame{Title: "Request " + digest, Nav: "outcomes", Polls: true, Alert: a.alert}, Record: record, Digest: digest, Reason: a.reason}
	page.DataAt = time.Now()
	switch {
	case errors.Is(err, core.ErrNotFound):
		page.Record, page.IsGone = inspect.Record{Key: key}, true
	case err != nil:
		page.showLast(v, key, err)
		a.status = http.StatusServiceUnavailable
	}
	page.Runner = processLink{ID: page.Process}
	if v.lists != nil {
		page.Runner = v.lists.linkTo(page.Process)
	}
	page.Raw, page.Ends, page.HasKey = strings.TrimPrefix(c.raw(key), "i:"), time.Now().Add(page.Retention), key.Raw() != ""
	if page.CanResolve = canResolve(page.Record); page.CanResolve {
		page.Handler = c.handlerOf(ctx, page.Process)
	}
	page.Actor, page.Allowed = c.whoActs(r)
	switch {
	case a.did == "done" && err == nil && page.State == core.StateDone:
		page.Notice = "The request is done. Copies do not run."
	case a.did == "not_done" && page.IsGone:
		page.Notice = "There is no record of the request any more. The next copy runs."
	}
	c.render(w, r, max(a.status, http.StatusOK), "attempt", page)
}

// handlerOf says what is known of the process of a handler.
func (c *Console) handlerOf(ctx context.Context, id string) string {
	p, err := c.inspector.Process(ctx, id) // id is "" in a damaged record
	if err != nil && !errors.Is(err, core.ErrNotFound) {
		return "It is not known whether its process is alive."
	}
	heard, isAlive := heardOf(p, err == nil)
	if isAlive {
		return "Its process " + heard + ": the handler may still charge."
	}
	return "Its process " + heard + ". If it still runs, its handler may still charge."
}

// IsRunning reports whether the attempt holds its lock.
func (p *attemptPage) IsRunning() bool { return p.State == core.StateRunning }

// showLast fills the page from the last list, because the record could not be read.
func (p *attemptPage) showLast(v view, key inspect.Key, err error) {
	p.Trouble, p.Record, p.DataAt = err.Error(), inspect.Record{Key: key}, time.Time{}
	if v.lists == nil {
		return
	}
	for _, record := range v.lists.unknown.Records {
		if record.Key == key {
			p.Record, p.DataAt, p.DataAge = record, v.lists.at, time.Since(v.lists.at)
		}
	}
}

// canResolve reports whether the record is one that Resolve ends.
func canResolve(r inspect.Record) bool {
	return r.State == core.StateUnknown || r.State == core.StateDamaged
}

// readRecord reads the record of this key.
func (c *Console) readRecord(ctx context.Context, key inspect.Key) (inspect.Record, error) {
	endpoint, _ := key.EndpointKey()
	for _, spelling := range []string{key.Name(), endpoint} { // as readLock
		record, err := c.inspector.Record(ctx, spelling)
		if err != nil || record.Key == key {
			return record, err
		}
	}
	return inspect.Record{}, core.ErrNotFound
}
