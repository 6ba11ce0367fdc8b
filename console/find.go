package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/inspect"
)

// find answers what an operator has typed, in any spelling of package inspect, with the address of a page,
// which has only the digest. It is a form of POST, because the address of a GET gets into logs.
func (c *Console) find(w http.ResponseWriter, r *http.Request, typed string) {
	spellings := spellingsOf(typed)
	last := spellings[len(spellings)-1]
	for _, spelling := range spellings {
		key, kind, err := c.search(r.Context(), spelling)
		switch {
		case errors.Is(err, core.ErrNotFound):
			continue
		case err != nil:
			page := &problemPage{frame: frame{Title: "Redis does not reply", Trouble: err.Error()}}
			c.render(w, r, http.StatusServiceUnavailable, "problem", page)
		default:
			c.board.remember(key)
			toPage(w, kind, key.String())
		}
		return
	}
	if processID.MatchString(last) {
		toPage(w, "process", last)
		return
	}
	wanted := "Nothing was found. No lock with this key is held or awaited, and no request with it has a record."
	if digest.MatchString(last) {
		wanted += " No such key has this digest."
	}
	if processDigits.MatchString(last) {
		switch ids := c.board.look(r.Context()).lists.processesWith(last); len(ids) {
		case 0:
			wanted += " The last lists have no process whose id begins with these digits."
		case 1:
			toPage(w, "process", ids[0])
			return
		default:
			wanted = fmt.Sprintf("The ids of %d processes begin with these digits: give more of them.", len(ids))
		}
	}
	c.problem(w, r, http.StatusNotFound, wanted)
}

var (
	// digest matches the digest of a key.
	digest = regexp.MustCompile(`^[0-9a-f]{12}$`)
	// processDigits matches the first digits of the id of a process.
	processDigits = regexp.MustCompile(`^[0-9a-f]{4,31}$`)
	// attribute matches an attribute of a line of the log.
	attribute = regexp.MustCompile(`^(?:key|endpoint_key|process)=`)
	// hexDigits matches what is no key in another case.
	hexDigits = regexp.MustCompile(`^[0-9a-fA-F]{4,32}$`)
)

// spellingsOf returns what an operator may mean: what is typed; an attribute of a line of the log; a
// digest or an id in upper case.
func spellingsOf(typed string) []string {
	typed = strings.TrimSpace(typed)
	spellings := []string{typed}
	value := strings.Trim(attribute.ReplaceAllString(typed, ""), ` "`)
	if hexDigits.MatchString(value) {
		value = strings.ToLower(value)
	}
	if value != typed {
		spellings = append(spellings, value)
	}
	return spellings
}

// processesWith returns the ids in the lists that begin with these digits.
func (l *lists) processesWith(digits string) []string {
	if l == nil {
		return nil
	}
	var ids []string
	add := func(id string) {
		if strings.HasPrefix(id, digits) && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	for _, p := range l.processes.Processes {
		add(p.ID)
	}
	for _, row := range l.rows {
		for _, h := range row.Holders {
			add(h.Process)
		}
	}
	for _, record := range l.unknown.Records {
		add(record.Process)
	}
	return ids
}

// search returns the key of a lock or of a record, and the page for it. The error is core.ErrNotFound if
// there is neither.
func (c *Console) search(ctx context.Context, typed string) (key inspect.Key, kind string, err error) {
	if digest.MatchString(strings.ToLower(typed)) { // package inspect looks through the keys
		if err := c.board.begin(ctx); err != nil {
			return inspect.Key{}, "", err
		}
		defer c.board.end()
	}
	lock, err := c.inspector.Lock(ctx, typed)
	switch {
	case err == nil && !lock.Idempotent:
		return lock.Key, "lock", nil
	case err == nil:
		return lock.Key, "attempt", nil
	case !errors.Is(err, inspect.ErrNotFound):
		return inspect.Key{}, "", err
	}
	record, err := c.inspector.Record(ctx, typed)
	return record.Key, "attempt", err
}
