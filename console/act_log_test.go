package console_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/console"
	"github.com/reqlock/reqlock/inspect"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// Without an observer of the Inspector, an action is a line of the log. The actions go on although the browser has left.
func TestAnActionIsALineOfTheLog(t *testing.T) {
	var out bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
	defer slog.SetDefault(before)
	rdb := redistest.Reuse(t).Client(t)
	s := newSite(t, rdb)
	pages := must(console.New(must(inspect.New(rdb))(t), console.WithActions(console.Resolve, console.Revoke), console.WithActor(func(*http.Request) string { return "ada" })))(t)
	locks := newLocker(t, rdb)
	record, lease := s.unknown(t, locks, "pay:jane"), must(locks.Lock(t.Context(), "jane"))(t)
	lock, digest := s.lock(t, "jane"), record.Key.String()
	resolve, revoke := "/?attempt="+digest, "/?lock="+lock.Key.String()
	get(t, pages, resolve[1:])
	get(t, pages, revoke[1:])

	ctx, leave := context.WithCancel(t.Context())
	leave()
	for _, target := range []string{resolve, resolve, revoke} {
		form := resolution(record, "done")
		if target == revoke {
			form = revocation(lock, lease)
		}
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, target, strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		pages.ServeHTTP(httptest.NewRecorder(), r)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	resolved := `level=INFO msg="lock operator_resolved" key=` + digest + ` idempotent=true by=ada why="the charge is at the provider" before=unknown after=done attempt=` + record.Attempt.String()
	revoked := `level=INFO msg="lock operator_revoked" key=` + lock.Key.String() + ` by=ada why="the job hangs" before="held by process ` + processOf(lease)
	if len(lines) != 2 || !strings.HasSuffix(lines[0], resolved) || !strings.Contains(lines[1], revoked) || strings.Contains(out.String(), "jane") {
		t.Error(out.String())
	}
}
