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

// Without WithAudit, an action is a line of the log. The action goes on although the browser has left.
func TestAnActionIsALineOfTheLog(t *testing.T) {
	var out bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
	defer slog.SetDefault(before)
	rdb := redistest.Reuse(t).Client(t)
	s := newSite(t, rdb)
	pages := must(console.New(s.inspector, console.WithActions(console.Resolve), console.WithActor(func(*http.Request) string { return "ada" })))(t)
	record := s.unknown(t, newLocker(t, rdb), "pay:jane")
	digest, form := record.Key.String(), resolution(record, "done")
	get(t, pages, "?attempt="+digest)

	ctx, leave := context.WithCancel(t.Context())
	leave()
	for range 2 {
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/?attempt="+digest, strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		pages.ServeHTTP(httptest.NewRecorder(), r)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	const start = `level=INFO msg="lock action" action=resolve key=`
	const middle = ` actor=ada reason="the charge is at the provider" resolution=done before="unknown, attempt `
	if len(lines) != 2 || !strings.Contains(lines[0], start+digest+middle) || strings.Contains(lines[0], "error=") ||
		!strings.Contains(lines[1], `before="done, attempt `) || !strings.Contains(lines[1], `error="reqlock: the request has changed`) || strings.Contains(out.String(), "jane") {
		t.Error(out.String())
	}
}
