package console

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strings"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/inspect"
)

// find answers what an operator has typed, in any spelling of package inspect, with the address of a page,
// which has only the digest. It is a form of POST, because the address of a GET gets into logs.
func (c *Console) find(w http.ResponseWriter, r *http.Request, typed string) {
	typed = strings.TrimSpace(typed)
	if processID.MatchString(typed) {
		toPage(w, "process", typed)
		return
	}
	key, kind, err := c.search(r.Context(), typed)
	switch {
	case errors.Is(err, core.ErrNotFound):
		c.problem(w, r, http.StatusNotFound, "Nobody holds that lock or waits for it, and there is no record of such a request.")
	case err != nil:
		page := &problemPage{frame: frame{Title: "Redis does not reply", Trouble: err.Error()}}
		c.render(w, r, http.StatusServiceUnavailable, "problem", page)
	default:
		c.board.remember(key)
		toPage(w, kind, key.String())
	}
}

// digest matches the digest of a key.
var digest = regexp.MustCompile(`^[0-9a-fA-F]{12}$`)

// search returns the key of a lock or of a record, and the page for it. The error is core.ErrNotFound if
// there is neither.
func (c *Console) search(ctx context.Context, typed string) (key inspect.Key, kind string, err error) {
	if digest.MatchString(typed) { // package inspect looks through the keys
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
