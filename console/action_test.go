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
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// Without WithAudit, an action is a line of the log. The actions go on although the browser has left.
func TestAnActionIsALineOfTheLog(t *testing.T) {
	var out bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
	defer slog.SetDefault(before)
	rdb := redistest.Reuse(t).Client(t)
	s := newSite(t, rdb)
	pages := must(console.New(s.inspector, console.WithActions(console.Resolve, console.Revoke), console.WithActor(func(*http.Request) string { return "ada" })))(t)
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
	const start = `level=INFO msg="lock action" action=resolve key=`
	const middle = ` actor=ada reason="the charge is at the provider" resolution=done before="unknown, attempt `
	if len(lines) != 3 || strings.Contains(lines[2], "error=") || !strings.Contains(lines[0], start+digest+middle) || strings.Contains(lines[0], "error=") ||
		!strings.Contains(lines[1], `before="done, attempt `) || !strings.Contains(lines[1], `error="reqlock: the request has changed`) || strings.Contains(out.String(), "jane") {
		t.Error(out.String())
	}
}
